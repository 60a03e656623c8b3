#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/refuse.h"

namespace attsvm::python {
namespace {

struct ScalarType {
  Scalar scalar;
  nb::dlpack::dtype dtype;
};

constexpr nb::dlpack::dtype type(nb::dlpack::dtype_code code, std::uint8_t bits) {
  return {static_cast<std::uint8_t>(code), bits, 1};
}

using Code = nb::dlpack::dtype_code;
constexpr std::array<ScalarType, 12> kTypes{{{Scalar::f64, type(Code::Float, 64)},
                                             {Scalar::f32, type(Code::Float, 32)},
                                             {Scalar::f16, type(Code::Float, 16)},
                                             {Scalar::i64, type(Code::Int, 64)},
                                             {Scalar::i32, type(Code::Int, 32)},
                                             {Scalar::i16, type(Code::Int, 16)},
                                             {Scalar::i8, type(Code::Int, 8)},
                                             {Scalar::u64, type(Code::UInt, 64)},
                                             {Scalar::u32, type(Code::UInt, 32)},
                                             {Scalar::u16, type(Code::UInt, 16)},
                                             {Scalar::u8, type(Code::UInt, 8)},
                                             {Scalar::boolean, type(Code::Bool, 8)}}};

nb::any any_of(nb::object value) { return nb::steal<nb::any>(value.release()); }

}  // namespace

Array to_array(const GivenArray& given) {
  Array array;
  const auto* const known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const ScalarType& t) { return t.dtype == given.dtype(); });
  if (known == kTypes.end()) throw nb::type_error("arrays must hold real numbers or bool");
  array.scalar = known->scalar;
  for (std::size_t axis = 0; axis < given.ndim(); ++axis) array.shape.push_back(static_cast<Index>(given.shape(axis)));
  static constexpr std::byte kNothing{};  // empty arrays need a valid pointer too
  array.data = given.data() == nullptr ? &kNothing : static_cast<const std::byte*>(given.data());
  array.owner = std::make_shared<const GivenArray>(given);
  return array;
}

nb::any to_python(const Array& given) {
  if (given.scalar == Scalar::character && given.rank() == 2) return any_of(nb::cast(to_texts(given, "text")));
  if (given.scalar == Scalar::character) return any_of(nb::cast(to_text(given, "text")));
  const Array array = given.scalar == Scalar::bf16 ? to_f64(given) : to_native(given);
  if (array.rank() == 0 && array.scalar == Scalar::f64) {
    const Array number = to_f64(array);
    return any_of(nb::cast(f64_span(number).front()));
  }
  const auto* const known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const ScalarType& t) { return t.scalar == array.scalar; });
  std::vector<std::size_t> shape(array.shape.begin(), array.shape.end());
  auto keeper = std::make_unique<Array>(array);
  const void* data = keeper->data;
  const nb::capsule owner(keeper.get(), [](void* kept) noexcept { delete static_cast<Array*>(kept); });
  (void)keeper.release();  // the capsule owns it now
  nb::object result =
      nb::cast(nb::ndarray<nb::numpy, nb::ro>(data, shape.size(), shape.data(), owner, nullptr, known->dtype));
  // NumPy's int64 is C's long, nanobind's is long long: equal types that repr shows differently.
  if (array.scalar == Scalar::i64) result = result.attr("view")("int64");
  return any_of(std::move(result));
}

Fields to_python(const NamedArrays& arrays) {
  nb::dict result;
  for (const auto& [name, array] : arrays) result[name.c_str()] = to_python(array);
  return result;
}

NamedArrays to_named_arrays(const Fields& arrays) {
  NamedArrays result;
  for (const auto& [name, value] : arrays) {
    Array array;
    if (nb::isinstance<nb::str>(value)) {
      array = Array::text(nb::cast<std::string>(value));
    } else if (nb::isinstance<nb::float_>(value)) {
      array = Array::number(nb::cast<double>(value));
    } else if (nb::isinstance<nb::list>(value)) {
      array = Array::texts(nb::cast<std::vector<std::string>>(value));
    } else {
      array = to_array(nb::cast<GivenArray>(value));
    }
    result.emplace_back(nb::cast<std::string>(name), std::move(array));
  }
  return result;
}

RowMatrix to_matrix(const GivenArray& given, std::string_view name, bool many_heads) {
  Array array = to_f64(to_array(given));
  if (array.rank() < 1 || array.rank() > (many_heads ? 3 : 2) || array.size() < 1) {
    refuse("{} has shape {}; must be a matrix or a vector{}", name, shape_text(array.shape),
           many_heads ? ", or a matrix per head" : "");
  }
  require_finite(array, name);
  const Index cols = array.rank() > 1 ? array.shape.back() : 1;
  return ConstRows(f64_span(array).data(), array.size() / cols, cols);
}

}  // namespace attsvm::python
