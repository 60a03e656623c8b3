#include "base/out_of_memory.h"

#include <gmp.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/arb.h"

namespace attsvm::internal {
namespace {

// Both libraries free what they allocated by free(), also what they had before these were set.

void* allocate(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

void* allocate_zeros(std::size_t count, std::size_t bytes) {
  void* memory = std::calloc(count, bytes);
  if (memory == nullptr && count > 0 && bytes > 0) throw std::bad_alloc();
  return memory;
}

void* reallocate(void* memory, std::size_t bytes) {
  void* moved = std::realloc(memory, bytes);
  if (moved == nullptr && bytes > 0) throw std::bad_alloc();
  return moved;
}

void* reallocate_sized(void* memory, std::size_t, std::size_t bytes) { return reallocate(memory, bytes); }
void free_sized(void* memory, std::size_t) { std::free(memory); }

}  // namespace

void throw_where_libraries_lack_memory() {
  __flint_set_memory_functions(allocate, allocate_zeros, reallocate, std::free);
  mp_set_memory_functions(allocate, reallocate_sized, free_sized);
}

}  // namespace attsvm::internal
