#include <gmp.h>

#include <cstdlib>
#include <limits>
#include <new>

#include "base/out_of_memory.h"
#include "failing_malloc.h"
#include "support.h"

// The linker sends requests of our own code here, which are Eigen's. They always succeed: if one fails while a matrix
// changes its size, Eigen 3.4 frees the old block twice, and nothing after that means anything (app/main.cpp).
extern "C" {

void* __libc_malloc(std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __wrap_malloc(std::size_t size) { return __libc_malloc(size); }
void* __wrap_realloc(void* memory, std::size_t size) { return __libc_realloc(memory, size); }

}  // extern "C"

namespace attsvm {
namespace {

/// Everything one call after another; the answer as bytes.
std::string worked_through(const std::string& file, Threads& threads) {
  save_task(file, generate({.n = 4, .T = 4, .d = 5}, 3).task, {}, true);
  const AttentionTask task = load_task(file, threads);
  const MarginProblem problem = MarginProblem::attention(task, optimal_tokens(task).selection);
  std::string bytes;
  const auto keep = [&](const RowMatrix& W) {
    bytes.append(reinterpret_cast<const char*>(W.data()), sizeof(double) * static_cast<std::size_t>(W.size()));
  };
  for (const Norm norm : {Norm::frobenius(), Norm::nuclear(), Norm::entrywise(4)}) {
    const MarginSolution solution = solve(problem, {.norm = norm}, threads);
    keep(solution.W);
    if (!verify(task, stored(problem, solution, 1e-8)).valid) bytes += "not valid";
  }
  const TrainedRun run = train(task, {.steps = 20}, threads);
  keep(run.W);
  return bytes;
}

TEST(Allocation, EveryRefusalIsBadAllocAndLeavesNothingBehind) {
  internal::throw_where_libraries_lack_memory();
  Threads threads(1);
  const test::Scratch scratch;
  const std::string file = scratch.file("task.npz");
  const std::string expected = worked_through(file, threads);
  failing_malloc_refuse(0, 0);
  ASSERT_EQ(worked_through(file, threads), expected);
  const long all = failing_malloc_requests();
  ASSERT_EQ(expected.find("not valid"), std::string::npos);
  // A soak tries every request; here a share of them, and the first ones all.
  const char* wanted = std::getenv("ATTSVM_ALLOCATIONS");
  const long most = wanted == nullptr ? 60 : std::atol(wanted);
  long refused = 0;
  for (const long count : {1L, std::numeric_limits<long>::max() / 2}) {  // one, or all from there on
    for (long at = 1; at <= all; at += at < 20 ? 1 : std::max(1L, all / most)) {
      failing_malloc_refuse(at, count);
      std::string bytes;
      bool ended = false;
      try {
        bytes = worked_through(file, threads);
        ended = true;
      } catch (const std::bad_alloc&) {
        ++refused;
      }
      failing_malloc_refuse(0, 0);
      EXPECT_TRUE(!ended || bytes == expected) << at;
    }
    EXPECT_EQ(worked_through(file, threads), expected);
  }
  EXPECT_GT(refused, most);
  RecordProperty("requests", std::to_string(all));
}

void* allocate_otherwise(std::size_t bytes) { return std::malloc(bytes); }
void* reallocate_otherwise(void* memory, std::size_t, std::size_t bytes) { return std::realloc(memory, bytes); }
void free_otherwise(void* memory, std::size_t) { std::free(memory); }

TEST(Allocation, LeavesGmpToThoseWhoGaveItFunctions) {
  const auto allocates_with = [] {
    void* (*allocate)(std::size_t) = nullptr;
    mp_get_memory_functions(&allocate, nullptr, nullptr);
    return allocate;
  };
  mp_set_memory_functions(allocate_otherwise, reallocate_otherwise, free_otherwise);
  internal::throw_where_libraries_lack_memory();
  EXPECT_EQ(allocates_with(), &allocate_otherwise);
  mp_set_memory_functions(nullptr, nullptr, nullptr);
  const auto usual = allocates_with();
  internal::throw_where_libraries_lack_memory();
  const auto ours = allocates_with();
  EXPECT_NE(ours, usual);
  internal::throw_where_libraries_lack_memory();
  EXPECT_EQ(allocates_with(), ours) << "a second time changes nothing";
}

}  // namespace
}  // namespace attsvm
