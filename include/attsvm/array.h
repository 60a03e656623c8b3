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

using Index = std::int64_t;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstRows = Eigen::Map<const RowMatrix>;          ///< a row-major matrix in somebody's memory
using ConstVector = Eigen::Map<const Eigen::VectorXd>;  ///< a vector in somebody's memory

/// The number types that files and callers may bring. Inside, everything is f64 or i64.
enum class Scalar : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean, character };

Index size_of(Scalar scalar);             ///< bytes of one number
std::string_view name_of(Scalar scalar);  ///< "float64", "bool", …
bool is_floating(Scalar scalar);

/// Numbers of one type with a shape (text: characters of four bytes, the last size being its length): a view of the
/// caller's memory, or of memory that `owner` keeps alive. A default-constructed Array is absent: an optional array
/// that was not given.
struct Array {
  Scalar scalar = Scalar::f64;
  std::vector<Index> shape{};           ///< () is a single number
  const std::byte* data = nullptr;      ///< product(shape) numbers; need not be aligned
  bool fortran_order = false;           ///< first index fastest
  bool foreign_endian = false;          ///< bytes of each number are in the other order
  bool known_finite = false;            ///< somebody has already looked at every number
  std::shared_ptr<const void> owner{};  ///< null: the caller keeps the memory alive

  bool given() const { return data != nullptr; }
  Index rank() const { return static_cast<Index>(shape.size()); }
  Index size() const;   ///< how many numbers
  Index bytes() const;  ///< size() * size_of(scalar)

  static Array view(const double* numbers, std::vector<Index> shape);
  static Array view(const float* numbers, std::vector<Index> shape);
  static Array view(const Index* numbers, std::vector<Index> shape);
  static Array own(std::vector<double> numbers, std::vector<Index> shape);
  static Array own(std::vector<Index> numbers, std::vector<Index> shape);
  static Array own(const std::vector<bool>& flags, std::vector<Index> shape);
  static Array own(const Eigen::Ref<const RowMatrix>& matrix);
  static Array text(std::string_view ascii);
  static Array number(double value) { return own(std::vector<double>{value}, {}); }
};

/// "(6,8,10)"
std::string shape_text(std::span<const Index> shape);

/// The same numbers, type kept, in C order and this machine's byte order. The array itself where it is that already.
Array to_native(const Array& array);

/// The same numbers as aligned, native, C-ordered f64. The array itself where it is that already, else one copy.
/// Integers and bools are accepted.
Array to_f64(const Array& array);

/// Integers of any width as Index. InputError if the numbers are floating point or too large.
std::vector<Index> to_indices(const Array& array, std::string_view name);

/// The text of an array of characters; InputError if it holds anything else, or is not ASCII.
std::string to_text(const Array& array, std::string_view name);

/// The numbers of an array that to_f64 returned.
std::span<const double> f64_span(const Array& array);

/// InputError naming the first entry that is NaN or infinite, if there is one. Sets known_finite.
void require_finite(Array& array, std::string_view name);

}  // namespace attsvm
