#pragma once

#include <cstddef>
#include <memory>

#include "base/buffer.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ATTSVM_SEES_FREED_MEMORY
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ATTSVM_SEES_FREED_MEMORY
#endif

namespace attsvm::internal {

/// Memory for Storage. Each thread keeps some of the blocks it freed for its next requests: on medium-sized problems
/// solved one after another, fresh pages would cost more than a tenth of the time. Static and thread_local objects must
/// not hold any, because they may outlive the blocks of their thread.
struct RecycledMemory {
#ifdef ATTSVM_SEES_FREED_MEMORY
  static constexpr std::size_t kKept = 0;  // AddressSanitizer cannot see use after free in recycled blocks
#else
  static constexpr std::size_t kKept = std::size_t{16} << 20;  ///< most bytes that a thread keeps
#endif
  static std::byte* take(std::size_t& bytes);  ///< sets `bytes` to the size of the block
  static void give_back(std::byte* block, std::size_t bytes) noexcept;
};

/// Large working memory that is not initialised, so that pages that are never written cost nothing. Growing loses the
/// contents.
template <class T>
class Storage {
 public:
  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() { release(); }

  T* data() { return items_; }
  const T* data() const { return items_; }
  T& operator[](Index i) { return items_[i]; }
  const T& operator[](Index i) const { return items_[i]; }

  void reserve(Index count) {
    if (count <= capacity()) return;
    release();
    std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    items_ = reinterpret_cast<T*>(RecycledMemory::take(bytes));
    bytes_ = bytes;
  }
  Index capacity() const { return static_cast<Index>(bytes_ / sizeof(T)); }
  void swap(Storage& other) {
    std::swap(items_, other.items_);
    std::swap(bytes_, other.bytes_);
  }

 private:
  void release() {
    if (bytes_ > 0) RecycledMemory::give_back(reinterpret_cast<std::byte*>(items_), bytes_);
    items_ = nullptr;
    bytes_ = 0;
  }

  T* items_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace attsvm::internal
