#pragma once

#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

/// Has the other ranks do a job while `own` runs here, and returns their answers in the order of ranks.
using Ask = std::function<std::vector<std::string>(const std::string& job, const std::function<void()>& own)>;

/// Writes numbers one after another, as ranks send them to each other. Ranks run the same build on machines of one
/// kind.
class Packer {
 public:
  Packer() { bytes_.reserve(kLeast); }

  template <class Value>
  requires std::is_trivially_copyable_v<Value> Packer& put(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <class Value>
  requires std::is_trivially_copyable_v<Value> Packer& put(std::span<const Value> values) {
    put(static_cast<Index>(values.size()));
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return *this;
  }
  template <class Matrix>
  requires requires(const Matrix& matrix) { matrix.rows(), matrix.cols(), matrix.data(); }
  Packer& put(const Matrix& matrix) {
    put(static_cast<Index>(matrix.rows())).put(static_cast<Index>(matrix.cols()));
    bytes_.append(reinterpret_cast<const char*>(matrix.data()),
                  static_cast<std::size_t>(matrix.size()) * sizeof *matrix.data());
    return *this;
  }
  std::string take() { return std::move(bytes_); }

 private:
  static constexpr std::size_t kLeast = 256;  // most jobs without a matrix
  std::string bytes_;
};

/// Reads them back, in the same order.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  bool done() const { return bytes_.empty(); }

  template <class Value>
  requires std::is_trivially_copyable_v<Value> Value get() {
    Value value;
    copy(&value, sizeof value);
    return value;
  }
  template <class Value>
  std::vector<Value> list() {
    const auto size = static_cast<std::size_t>(get<Index>());
    std::vector<Value> values(size);
    copy(values.data(), size * sizeof(Value));
    return values;
  }
  template <class Matrix>
  Matrix matrix() {
    const Index rows = get<Index>(), cols = get<Index>();
    Matrix matrix(rows, cols);
    copy(matrix.data(), static_cast<std::size_t>(matrix.size()) * sizeof *matrix.data());
    return matrix;
  }

 private:
  void copy(void* to, std::size_t size) {
    if (size > bytes_.size()) throw std::logic_error("a message between ranks is too short");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }

  std::string_view bytes_;
};

}  // namespace attsvm::internal
