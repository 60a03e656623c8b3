// Vector loops against the plainest loop over the same numbers, in the cache and beyond it.

#include <span>

#include "base/random.h"
#include "base/simd.h"
#include "bench.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

// Every loop writes it, so that the compiler cannot remove any of them.
volatile double sink;

void sum_numbers(std::span<const double> numbers) {
  double sum[8] = {};
  for (std::size_t i = 0; i < numbers.size(); i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sum[k] += numbers[i + k];
  }
  sink = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

void run_kernels() {
  for (const std::size_t size : {std::size_t{1} << 14, std::size_t{1} << 24}) {
    std::vector<double> numbers(size, 1.0);
    const std::size_t repeats = (std::size_t{1} << 24) / size;
    const Random random(1, 0, 0);
    std::vector<Contender> loops{
        {"sum", [&] { sum_numbers(numbers); }},
        {"first_nonfinite", [&] { sink = static_cast<double>(first_nonfinite(std::span<const double>(numbers))); }},
        {"normals", [&] { random.normals(numbers); }}};
    for (Contender& loop : loops) {
      loop.run = [once = loop.run, repeats] {
        for (std::size_t k = 0; k < repeats; ++k) once();
      };
    }
    interleave(loops, 9);
    for (const Contender& loop : loops) {
      emit({{"name", loop.name},
            {"numbers", size},
            {"bytes", 8 * size},
            {"seconds", divided(loop.seconds, static_cast<double>(repeats))}});
    }
  }
}

}  // namespace

void add_kernels(CLI::App& program) { program.add_subcommand("kernels", "Vector loops")->callback(run_kernels); }

}  // namespace attsvm::bench
