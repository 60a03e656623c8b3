#pragma once

#include <Eigen/Core>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace attsvm {

namespace internal {
struct FiniteMark;
}

using Index = std::int64_t;  ///< sizes, positions and counts
/// A matrix that owns its numbers.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRows = Eigen::Map<const RowMatrix>;          ///< a row-major matrix in memory that it does not own
using ConstVector = Eigen::Map<const Eigen::VectorXd>;  ///< a vector in memory that it does not own

/// The number types of arrays in files and from callers. Tasks and solvers compute with f64 and i64 only.
enum class Scalar : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, character };

Index size_of(Scalar scalar);             ///< bytes per number
std::string_view name_of(Scalar scalar);  ///< "float64", "bool", …
bool is_floating(Scalar scalar);          ///< f64, f32, f16 or bf16

/// Prints an enumerator of attsvm by its name.
template <class Enum>
requires std::is_enum_v<Enum> && requires(Enum value) {
  { name_of(value) } -> std::same_as<std::string_view>;
}
std::ostream& operator<<(std::ostream& out, Enum value) { return out << name_of(value); }

/// Numbers of one type with a shape: a view of the caller's memory, or of memory that `owner` keeps alive. Text is
/// stored as characters of four bytes, and the last entry of its shape is its length. A default-constructed Array
/// stands for an optional array that was not given.
struct Array {
  Scalar scalar = Scalar::f64;          ///< type of the numbers
  std::vector<Index> shape{};           ///< size of each axis; empty for a single number
  const std::byte* data = nullptr;      ///< size() numbers; need not be aligned; null: not given
  bool fortran_order = false;           ///< column-major: the first index varies fastest
  bool foreign_endian = false;          ///< each number has the byte order opposite to this machine's
  std::shared_ptr<const void> owner{};  ///< null: the caller keeps the memory alive

  Array() = default;
  /// An array in C order and this machine's byte order.
  Array(Scalar type, std::vector<Index> sizes, const std::byte* numbers, std::shared_ptr<const void> kept_by = {})
      : scalar(type), shape(std::move(sizes)), data(numbers), owner(std::move(kept_by)) {}

  bool given() const { return data != nullptr; }                   ///< false: stands for an array left out
  Index rank() const { return static_cast<Index>(shape.size()); }  ///< number of axes
  Index size() const;                                              ///< how many numbers: the product of `shape`
  Index bytes() const;                                             ///< size() * size_of(scalar)

  /// A C-ordered array in the memory at `numbers`, which the caller keeps alive.
  static Array view(const double* numbers, std::vector<Index> shape);
  static Array view(const float* numbers, std::vector<Index> shape);  ///< the same for f32
  static Array view(const Index* numbers, std::vector<Index> shape);  ///< the same for i64
  /// A C-ordered array that owns its numbers. std::logic_error if their count is not the product of `shape`.
  static Array own(std::vector<double> numbers, std::vector<Index> shape);
  static Array own(std::vector<Index> numbers, std::vector<Index> shape);      ///< the same for i64
  static Array own(const std::vector<bool>& flags, std::vector<Index> shape);  ///< the same for bools
  static Array own(const Eigen::Ref<const RowMatrix>& matrix);                 ///< a copy, of shape (rows,cols)
  static Array text(std::string_view ascii);  ///< characters; to_text() reads them back
  /// One text per row, as NumPy stores arrays of str; to_texts() reads them back. The texts are UTF-8.
  static Array texts(const std::vector<std::string>& texts);
  static Array number(double value) { return own(std::vector<double>{value}, {}); }  ///< of shape ()

 private:
  friend struct internal::FiniteMark;
  bool known_finite_ = false;  // every number was found finite
};

/// The shape as messages show it: "(6,8,10)".
std::string shape_text(std::span<const Index> shape);

/// The same numbers of the same type in C order and this machine's byte order. Copies nothing if `array` has both
/// already.
Array to_native(const Array& array);

/// The same numbers as aligned, native, C-ordered f64. The array itself where it is that already, else one copy.
/// Integers and bools are accepted; InputError, naming `name` and the place, if an integer is beyond ±2^53.
Array to_f64(const Array& array, std::string_view name = "array");

/// Integers of any width as Index. InputError, with `name` in its message, if the numbers are not integers or too
/// large.
std::vector<Index> to_indices(const Array& array, std::string_view name);

/// The text of an array of characters. InputError, with `name` in its message, if the array is not one ASCII text.
std::string to_text(const Array& array, std::string_view name);

/// The texts of an array of them, (n), as UTF-8. InputError, with `name` and the place in its message, if the array is
/// something else or a character does not exist in Unicode.
std::vector<std::string> to_texts(const Array& array, std::string_view name);

/// The numbers of an array that to_f64 returned, in C order. Valid as long as the memory of the array.
std::span<const double> f64_span(const Array& array);

/// InputError with `name`, the index and the value of the first number that is NaN or infinite, if there is one.
/// `array` must come from to_f64. It remembers the result, so that a second check costs nothing.
void require_finite(Array& array, std::string_view name);

}  // namespace attsvm
