#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "attsvm/random.h"
#include "base/simd.h"

namespace {

/// The limit of any loop that looks at its numbers once: how fast they come out of this level of memory.
void sum_of_numbers(benchmark::State& state) {
  const std::vector<double> numbers(static_cast<std::size_t>(state.range(0)), 1.0);
  for (auto _ : state) {
    double sum[8] = {};
    for (std::size_t i = 0; i < numbers.size(); i += 8) {
      for (std::size_t k = 0; k < 8; ++k) sum[k] += numbers[i + k];
    }
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0) * 8);
}
BENCHMARK(sum_of_numbers)->Arg(1 << 14)->Arg(1 << 24);

void first_nonfinite(benchmark::State& state) {
  const std::vector<double> numbers(static_cast<std::size_t>(state.range(0)), 1.0);
  for (auto _ : state) benchmark::DoNotOptimize(attsvm::first_nonfinite(std::span<const double>(numbers)));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 8);
}
BENCHMARK(first_nonfinite)->Arg(1 << 14)->Arg(1 << 24);

void normals(benchmark::State& state) {
  std::vector<double> numbers(1 << 14);
  const attsvm::Random random(1, 0, 0);
  for (auto _ : state) {
    random.normals(numbers);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(numbers.size()));
}
BENCHMARK(normals);

}  // namespace
