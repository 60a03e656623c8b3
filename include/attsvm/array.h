#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attsvm {

using Index = std::int64_t;  ///< sizes, positions and counts
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRows = Eigen::Map<const RowMatrix>;          ///< a row-major matrix in memory that it does not own
using ConstVector = Eigen::Map<const Eigen::VectorXd>;  ///< a vector in memory that it does not own

/// The number types of arrays in files and from callers. Tasks and solvers compute with f64 and i64 only.
enum class Scalar : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, character };

Index size_of(Scalar scalar);             ///< bytes per number
std::string_view name_of(Scalar scalar);  ///< "float64", "bool", …
bool is_floating(Scalar scalar);

/// Numbers of one type with a shape: a view of the caller's memory, or of memory that `owner` keeps alive. Text is
/// stored as characters of four bytes, and the last entry of its shape is its length. A default-constructed Array
/// stands for an optional array that was not given.
struct Array {
  Scalar scalar = Scalar::f64;
  std::vector<Index> shape{};           ///< size of each axis; empty for a single number
  const std::byte* data = nullptr;      ///< size() numbers; need not be aligned; null: not given
  bool fortran_order = false;           ///< column-major: the first index varies fastest
  bool foreign_endian = false;          ///< each number has the byte order opposite to this machine's
  bool known_finite = false;            ///< a check has already found every number finite
  std::shared_ptr<const void> owner{};  ///< null: the caller keeps the memory alive

  bool given() const { return data != nullptr; }
  Index rank() const { return static_cast<Index>(shape.size()); }  ///< number of axes
  Index size() const;                                              ///< how many numbers: the product of `shape`
  Index bytes() const;                                             ///< size() * size_of(scalar)

  /// A C-ordered array in the memory at `numbers`, which the caller keeps alive.
  static Array view(const double* numbers, std::vector<Index> shape);
  static Array view(const float* numbers, std::vector<Index> shape);
  static Array view(const Index* numbers, std::vector<Index> shape);
  /// A C-ordered array that owns its numbers. std::logic_error if their count is not the product of `shape`.
  static Array own(std::vector<double> numbers, std::vector<Index> shape);
  static Array own(std::vector<Index> numbers, std::vector<Index> shape);
  static Array own(const std::vector<bool>& flags, std::vector<Index> shape);
  static Array own(const Eigen::Ref<const RowMatrix>& matrix);  ///< a copy, of shape (rows,cols)
  static Array text(std::string_view ascii);                    ///< characters; to_text() reads them back
  static Array number(double value) { return own(std::vector<double>{value}, {}); }  ///< of shape ()
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

/// The numbers of an array that to_f64 returned, in C order. Valid as long as the memory of the array.
std::span<const double> f64_span(const Array& array);

/// Sets known_finite if every number of `array`, which must come from to_f64, is finite. Else InputError with `name`,
/// the index and the value of the first number that is NaN or infinite.
void require_finite(Array& array, std::string_view name);

}  // namespace attsvm
