#include "base/out_of_memory.h"

#include <gmp.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <tuple>

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

using Functions =
    std::tuple<void* (*)(std::size_t), void* (*)(void*, std::size_t, std::size_t), void (*)(void*, std::size_t)>;

Functions functions_of_gmp() {
  Functions now;
  mp_get_memory_functions(&std::get<0>(now), &std::get<1>(now), &std::get<2>(now));
  return now;
}

}  // namespace

void throw_where_libraries_lack_memory() {
  __flint_set_memory_functions(allocate, allocate_zeros, reallocate, std::free);
  Functions before = functions_of_gmp();
  mp_set_memory_functions(nullptr, nullptr, nullptr);
  const bool usual = before == functions_of_gmp();
  if (usual) before = {allocate, reallocate_sized, free_sized};
  mp_set_memory_functions(std::get<0>(before), std::get<1>(before), std::get<2>(before));
}

}  // namespace attsvm::internal
