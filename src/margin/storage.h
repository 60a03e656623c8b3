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

namespace attsvm {

/// Memory for Storage. A little of what was freed stays with the thread for whoever asks next: on problems of medium
/// size, solved one after another, fresh pages would cost more than a tenth of the time. What lives as long as its
/// thread (static, thread_local) must not hold any.
struct RecycledMemory {
#ifdef ATTSVM_SEES_FREED_MEMORY
  static constexpr std::size_t kKept = 0;  // AddressSanitizer would not see what is used after it was freed
#else
  static constexpr std::size_t kKept = std::size_t{16} << 20;  ///< bytes that a thread keeps at most
#endif
  static std::byte* take(std::size_t& bytes);  ///< `bytes` becomes what there really is
  static void give_back(std::byte* block, std::size_t bytes) noexcept;
};

/// Large working memory that is not cleared: pages nobody writes cost nothing. Growing loses the contents.
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

}  // namespace attsvm
