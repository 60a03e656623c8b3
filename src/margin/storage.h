#pragma once

#include <memory>

#include "base/buffer.h"

namespace attsvm {

/// Large working memory that is not cleared: pages nobody writes cost nothing. Growing loses the contents.
template <class T>
class Storage {
 public:
  T* data() { return items_.get(); }
  const T* data() const { return items_.get(); }
  T& operator[](Index i) { return items_[static_cast<std::size_t>(i)]; }
  const T& operator[](Index i) const { return items_[static_cast<std::size_t>(i)]; }

  void reserve(Index count) {
    if (count <= capacity_) return;
    items_.reset();
    items_ = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
    capacity_ = count;
  }
  Index capacity() const { return capacity_; }
  void swap(Storage& other) {
    items_.swap(other.items_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  std::unique_ptr<T[]> items_;
  Index capacity_ = 0;
};

}  // namespace attsvm
