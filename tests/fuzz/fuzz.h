#pragma once

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "attsvm/error.h"

namespace attsvm::internal {}
namespace attsvm {
using namespace internal;  // readers are fuzzed one by one
}

namespace attsvm::fuzz {

/// Ends the run with a report if what must hold does not.
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

/// Bytes as a regular file that is on no disk.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor_ >= 0 && ::write(descriptor_, data, size) == static_cast<ssize_t>(size), "cannot make a file");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

inline std::set<void*> mapped_copies;  ///< see __wrap_mmap

/// Runs `read`, which may refuse its input with one line of text and in no other way.
template <class Read>
void refuse_or(Read&& read) {
  try {
    read();
  } catch (const InputError& error) {
    const std::string_view line = error.what();
    const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
    require(!line.empty() && std::none_of(line.begin(), line.end(), control), "an error is not one line of text");
  }
}

}  // namespace attsvm::fuzz

// The linker sends mmap and munmap here. A mapped file becomes a block of exactly its size, so that AddressSanitizer
// sees what reads past the end; in a real mapping that is legal up to the end of the page.
extern "C" {

void* __real_mmap(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);

void* __wrap_mmap(void* at, std::size_t size, int protection, int flags, int descriptor, off_t offset) {
  if (descriptor < 0 || protection != PROT_READ) return __real_mmap(at, size, protection, flags, descriptor, offset);
  void* copy = nullptr;
  constexpr std::size_t kPage = 4096;
  const bool done = ::posix_memalign(&copy, kPage, size) == 0 &&
                    ::pread(descriptor, copy, size, offset) == static_cast<ssize_t>(size);
  attsvm::fuzz::require(done, "cannot copy a file");
  attsvm::fuzz::mapped_copies.insert(copy);
  return copy;
}

int __wrap_munmap(void* at, std::size_t size) {
  if (attsvm::fuzz::mapped_copies.erase(at) == 0) return __real_munmap(at, size);
  std::free(at);
  return 0;
}
}
