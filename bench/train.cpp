// Training: small runs alone and many at once; one step of large tasks against the limits of memory and multiplier.
// bench_train [json | n,T,d ...]: "json" prints the seconds a step alone, for the peers beside it.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string_view>

#include "attsvm/attsvm.h"
#include "base/blas.h"
#include "measure.h"

namespace {

using namespace attsvm;

struct Size {
  Index n, T, d;
};

double least(const bench::Contender& contender) {
  return *std::min_element(contender.seconds.begin(), contender.seconds.end());
}

struct Small {
  double one, many;  // seconds a step, and an instance; `many` on two threads
};

/// Time of a step as the difference of a long and a short run, so that preparing does not count.
Small measure_small(const Size& size, Parametrization param, Optimizer optimizer) {
  constexpr std::uint32_t kInstances = 1000;
  constexpr Index kShort = 100, kLong = 500;
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < kInstances; ++k) {
    tasks.push_back(generate({.n = size.n, .T = size.T, .d = size.d}, 1, k).task);
  }
  Threads alone(1), two(2);
  const auto settings = [&](Index steps) {
    return TrainSettings{.param = param, .optimizer = optimizer, .steps = steps};
  };
  std::vector<bench::Contender> runs{
      {"", [&] { train(tasks[0], settings(10 * kShort), alone); }},
      {"", [&] { train(tasks[0], settings(10 * kLong), alone); }},
      {"", [&] { train_many(tasks, settings(kShort), two); }},
      {"", [&] { train_many(tasks, settings(kLong), two); }},
  };
  bench::interleave(runs, 7);
  constexpr double kSteps = kLong - kShort;
  return {(least(runs[1]) - least(runs[0])) / kSteps / 10, (least(runs[3]) - least(runs[2])) / kSteps / kInstances};
}

struct Large {
  double step, read, multiply;  // seconds: one step, one read of the tokens, both products with W
};

/// What is read and multiplied here is all that a step must: each token once, Z Wᵀ and gᵀ Z.
Large measure_large(const Size& size, int thread_count, int rounds) {
  const auto& [n, T, d] = size;
  Threads threads(thread_count);
  const AttentionTask task = generate({.n = n, .T = T, .d = d}, 1).task;
  const RowMatrix W = train(task, {.steps = 0, .init = Init::random}, threads).W;
  GradientPass pass(task, {}, threads);
  LossGradient out;
  const SingleThreadBlas blas;
  const RowMatrix Z = RowMatrix::Constant(n, d, 0.1);
  RowMatrix U(n, d), G(d, d);
  constexpr Index kChunks = 64;
  const Index tokens = n * T * d, share = tokens / kChunks, block = 128;
  std::vector<double> sums(kChunks);
  const double* X = task.keys(0).data();
  std::vector<bench::Contender> runs{
      {"read",
       [&] {
         threads.for_each(kChunks, [&](Index chunk) {
           double sum[32] = {};
           const double* x = X + chunk * share;
           for (Index k = 0; k + 32 <= share; k += 32) {
             for (Index j = 0; j < 32; ++j) sum[j] += x[k + j];
           }
           for (const double part : sum) sums[static_cast<std::size_t>(chunk)] += part;
         });
       }},
      {"multiply",
       [&] {
         threads.for_each((n + block - 1) / block, [&](Index k) {
           const Index rows = std::min(block, n - k * block);
           gemm(false, true, rows, d, d, 1.0, Z.row(k * block).data(), d, W.data(), d, 0.0, U.row(k * block).data(), d);
         });
         threads.for_each((d + block - 1) / block, [&](Index k) {
           const Index rows = std::min(block, d - k * block);
           gemm(true, false, rows, d, n, 1.0, U.data() + k * block, d, Z.data(), d, 0.0, G.row(k * block).data(), d);
         });
       }},
      {"step", [&] { pass.evaluate(W, task.head(), {}, out); }},
  };
  bench::interleave(runs, rounds);
  return {least(runs[2]), least(runs[0]), least(runs[1])};
}

void print_small() {
  fmt::print("\n{:<14}{:<8}{:>16}{:>30}\n", "(n,T,d)", "", "one run, a step", "1,000 runs on two threads");
  for (const Size& size : {Size{6, 8, 10}, {15, 5, 20}, {5, 15, 20}}) {
    for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
      for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
        const Small at = measure_small(size, param, optimizer);
        fmt::print("{:<14}{:<8}{:>13.2f} us{:>20.4f} us a run\n", fmt::format("({},{},{})", size.n, size.T, size.d),
                   fmt::format("{} {}", name_of(param), name_of(optimizer)), 1e6 * at.one, 1e6 * at.many);
      }
    }
  }
}

void print_large(const std::vector<Size>& sizes) {
  fmt::print("\n{:<16}{:>8}{:>10}{:>10}{:>10}{:>22}{:>28}\n", "(n,T,d)", "threads", "step ms", "read ms", "gemm ms",
             "% of two token reads", "% of one read + products");
  for (const Size& size : sizes) {
    for (const int threads : {1, 2}) {
      const Large at = measure_large(size, threads, 9);
      fmt::print("{:<16}{:>8}{:>10.1f}{:>10.1f}{:>10.1f}{:>22.0f}{:>28.0f}\n",
                 fmt::format("({},{},{})", size.n, size.T, size.d), threads, 1e3 * at.step, 1e3 * at.read,
                 1e3 * at.multiply, 200 * at.read / at.step, 100 * (at.read + at.multiply) / at.step);
    }
  }
}

void print_json() {
  const Small W = measure_small({6, 8, 10}, Parametrization::W, Optimizer::ngd);
  const Small KQ = measure_small({6, 8, 10}, Parametrization::KQ, Optimizer::ngd);
  const Large large = measure_large({1000, 128, 256}, 2, 5);
  fmt::print("{{\"one_W\": {}, \"one_KQ\": {}, \"many_W\": {}, \"many_KQ\": {}, \"large\": {}}}\n", W.one, KQ.one,
             W.many, KQ.many, large.step);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "json") {
    print_json();
    return 0;
  }
  std::vector<Size> sizes;
  for (int k = 1; k < argc; ++k) {
    long n = 0, T = 0, d = 0;
    if (std::sscanf(argv[k], "%ld,%ld,%ld", &n, &T, &d) != 3) {
      fmt::print(stderr, "bench_train: {}: must be n,T,d\n", argv[k]);
      return 1;
    }
    sizes.push_back({n, T, d});
  }
  if (sizes.empty()) {
    print_small();
    sizes = {{1000, 128, 256}, {4000, 128, 256}};
  }
  print_large(sizes);
}
