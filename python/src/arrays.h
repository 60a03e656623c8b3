#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "attsvm/attsvm.h"

namespace attsvm::internal {}
namespace attsvm {
using namespace internal;  // one project
}

namespace attsvm::python {

namespace nb = nanobind;

/// An array from the Python files: C order, native byte order, real numbers or bool, in main memory.
using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// Types that say in the module's stub what containers hold.
using Fields = nb::typed<nb::dict, nb::str, nb::any>;
using Items = nb::typed<nb::list, nb::any>;
template <class... Parts>
using Answer = nb::typed<nb::tuple, Parts...>;

/// A view of a NumPy array, which it keeps alive.
Array to_array(const GivenArray& given);

/// A read-only NumPy array over the same memory, kept alive by it. A single number becomes a float, text a
/// str, an array of texts a list of them.
nb::any to_python(const Array& array);

Fields to_python(const NamedArrays& arrays);

/// Arrays, numbers, text and lists of texts by name: the inverse of to_python.
NamedArrays to_named_arrays(const Fields& arrays);

/// A matrix (d,dz), or a vector as one column; of many heads also (H,d,dz), one below the other. InputError with its
/// name if it is none of these, or not finite.
RowMatrix to_matrix(const GivenArray& given, std::string_view name, bool many_heads = false);

}  // namespace attsvm::python
