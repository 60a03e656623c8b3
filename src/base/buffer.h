#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

/// Working memory that only grows, so that a solver that is used again allocates nothing. Indexed by Index.
template <class T>
class Buffer {
 public:
  T* data() { return items_.data(); }
  const T* data() const { return items_.data(); }
  T& operator[](Index i) { return items_[static_cast<std::size_t>(i)]; }
  const T& operator[](Index i) const { return items_[static_cast<std::size_t>(i)]; }

  /// Makes room for `count` items and keeps the present ones.
  void grow(Index count) {
    if (count > static_cast<Index>(items_.size())) items_.resize(static_cast<std::size_t>(count));
  }
  /// Makes room for `count` items and sets each to `value`.
  void fill(Index count, T value) {
    grow(count);
    std::fill_n(items_.begin(), count, value);
  }
  void swap(Buffer& other) { items_.swap(other.items_); }

 private:
  std::vector<T> items_;
};

/// A list that keeps its memory when cleared.
class IndexList {
 public:
  Index size() const { return size_; }
  Index operator[](Index i) const { return items_[i]; }
  void clear() { size_ = 0; }
  void push(Index value) {
    items_.grow(size_ + 1);
    items_[size_++] = value;
  }
  void erase(Index at) { std::copy(items_.data() + at + 1, items_.data() + size_--, items_.data() + at); }
  void swap(IndexList& other) {
    items_.swap(other.items_);
    std::swap(size_, other.size_);
  }
  /// Whether an ascending list holds k, in a loop over ascending k; `next` starts at 0.
  bool meets(Index k, Index& next) const {
    if (next == size_ || items_[next] != k) return false;
    ++next;
    return true;
  }
  bool operator==(const IndexList& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  const Index* begin() const { return items_.data(); }
  const Index* end() const { return items_.data() + size_; }

 private:
  Buffer<Index> items_;
  Index size_ = 0;
};

}  // namespace attsvm::internal
