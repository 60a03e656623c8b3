// Training: one step of large tasks against the memory's and the multiplier's limits.
// bench_train [SIZE...]

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attsvm/attsvm.h"
#include "base/blas.h"
#include "base/stream_kernels.h"
#include "measure.h"

namespace {

using namespace attsvm;

void large(Index n, Index T, Index d, int threads_count) {
  Threads threads(threads_count);
  const AttentionTask task = generate({.n = n, .T = T, .d = d}, 1).task;
  const RowMatrix W = RowMatrix::Random(d, d) * 0.3;
  GradientPass pass(task, {}, threads);
  LossGradient out;
  const SingleThreadBlas blas;
  const RowMatrix Z = RowMatrix::Random(n, d);
  RowMatrix U(n, d);
  const Index chunks = 64, share = (n + chunks - 1) / chunks;
  const double* X = task.keys(0).data();
  std::vector<double> sums(static_cast<std::size_t>(chunks));
  std::vector<bench::Contender> runs{
      {"read", [&] {
         threads.for_each(chunks, [&](Index c) {
           const double *x = X + c * share * T * d, *end = X + std::min(n, (c + 1) * share) * T * d;
           std::array<double, 32> sum{};
           for (; x < end; x += 32) {
             for (std::size_t k = 0; k < 32; ++k) sum[k] += x[k];
           }
           sums[static_cast<std::size_t>(c)] = sum[0] + sum[31] + sum[15] + sum[7];
         });
       }},
      {"gemm", [&] {
         threads.for_each(chunks, [&](Index c) {
           const Index first = c * share, rows = std::min(n, first + share) - first;
           if (rows > 0) gemm(false, true, rows, d, d, 1.0, Z.row(first).data(), d, W.data(), d, 0.0, U.row(first).data(), d);
         });
       }},
      {"step", [&] { pass.evaluate(W, task.head(), {}, out); }}};
  bench::interleave(runs, 9);
  const auto least = [](const bench::Contender& run) { return *std::min_element(run.seconds.begin(), run.seconds.end()); };
  const double read = least(runs[0]), product = least(runs[1]), step = least(runs[2]);
  fmt::print("({},{},{}) {} threads: read {:.2f} ms ({:.1f} GB/s), gemm {:.2f} ms, step {:.2f} ms: {:.0f} % of two reads, {:.0f} % of one read + 2 gemm\n", n,
             T, d, threads_count, 1e3 * read, 8e-9 * static_cast<double>(n * T * d) / read, 1e3 * product, 1e3 * step,
             100 * 2 * read / step, 100 * (read + 2 * product) / step);
}

}  // namespace

int main() {
  large(1000, 128, 256, 1);
  large(1000, 128, 256, 2);
  large(4000, 128, 256, 2);
}
