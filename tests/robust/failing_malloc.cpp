#include "failing_malloc.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

static std::atomic<long> requests = 0, first = 0, last = 0;

static bool refused() {
  const long now = ++requests;
  if (now < first || now >= last) return false;
  errno = ENOMEM;
  return true;
}

void failing_malloc_refuse(long at, long count) {
  last = 0;
  requests = 0;
  first = at;
  last = at > 0 ? at + count : 0;
}

long failing_malloc_requests() { return requests; }

void* malloc(std::size_t size) { return refused() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) { return refused() ? nullptr : __libc_calloc(count, size); }
void* realloc(void* memory, std::size_t size) { return refused() ? nullptr : __libc_realloc(memory, size); }
void* memalign(std::size_t to, std::size_t size) { return refused() ? nullptr : __libc_memalign(to, size); }
void* aligned_alloc(std::size_t to, std::size_t size) { return memalign(to, size); }
int posix_memalign(void** memory, std::size_t to, std::size_t size) {
  void* found = memalign(to, size);
  if (found == nullptr) return ENOMEM;
  *memory = found;
  return 0;
}

}  // extern "C"

namespace {

// A library that is loaded first is set up last, so the constructors of the others are behind us.
[[gnu::constructor]] void read_environment() {
  const char *at = std::getenv("ATTSVM_FAIL_AT"), *count = std::getenv("ATTSVM_FAIL_COUNT");
  failing_malloc_refuse(at == nullptr ? 0 : std::atol(at), count == nullptr ? 1 : std::atol(count));
}

[[gnu::destructor]] void tell() {
  if (std::getenv("ATTSVM_COUNT_REQUESTS") != nullptr) std::fprintf(stderr, "%ld requests\n", requests.load());
}

}  // namespace
