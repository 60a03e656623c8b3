#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "attsvm/attsvm.h"

namespace attsvm::python {

namespace nb = nanobind;

/// What the Python side hands over: C order, this machine's byte order, real numbers or bool, in main memory.
using GivenArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// A view of a NumPy array, which it keeps alive.
Array to_array(const GivenArray& given);

/// A read-only NumPy array over the same memory, kept alive by it. A single number becomes a float, text a str.
nb::object to_python(const Array& array);

nb::dict to_python(const NamedArrays& arrays);

/// Arrays, numbers and text by name, as to_python gives them.
NamedArrays to_named_arrays(const nb::dict& arrays);

/// A matrix (d,dz), or a vector as one column. InputError names it where it is neither, or not finite.
RowMatrix to_matrix(const GivenArray& given, std::string_view name);

}  // namespace attsvm::python
