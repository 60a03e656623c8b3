// Large margin problems against the machine's limit: the time to read the tokens once plus that of the queries' product
// with W at the speed of DGEMM, both speeds measured in the same run.
// bench_solvers [[nuc:]n,T,d[,rank] ...]: nuc: the nuclear norm

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "attsvm/attsvm.h"
#include "base/blas.h"
#include "base/stream_kernels.h"
#include "margin/scaled_problem.h"
#include "measure.h"

namespace {

using namespace attsvm;

struct Size {
  Index n, T, d, rank;
  bool nuclear = false;
};

struct Speeds {
  double read = 0, multiply = 0;  // bytes and operations a second, all threads
};

double seconds_of(const std::function<void()>& work) {
  std::vector<bench::Contender> one{{"", work}};
  bench::interleave(one, 1);
  return one[0].median();
}

/// Best of three: a plain dot with 1.3 GB of numbers, and a 2000 × 2000 × 2000 product cut in two.
class Limits {
 public:
  Limits()
      : numbers_(kChunks * kChunk, 1e-3), ones_(kRow, 1.0), left_(kSide * kSide, 1.0), right_(left_), out_(left_) {}

  void measure(Threads& threads, Speeds& best) {
    const SingleThreadBlas single_thread;
    for (int round = 0; round < 3; ++round) {
      const double reading = seconds_of([&] { read(threads); });
      best.read = std::max(best.read, static_cast<double>(numbers_.size()) * 8 / reading);
      const double multiplying = seconds_of([&] { multiply(threads); });
      best.multiply = std::max(best.multiply, 2e9 * 8 / multiplying);
    }
  }

 private:
  static constexpr Index kRow = 256, kRows = 1000, kChunk = kRow * kRows, kChunks = 640, kSide = 2000;

  void read(Threads& threads) {
    threads.for_each(kChunks, [&](Index chunk) {
      std::vector<double> dots(kRows);
      row_dots(numbers_.data() + chunk * kChunk, kRows, kRow, ones_.data(), dots.data());
    });
  }
  void multiply(Threads& threads) {
    threads.for_each(2, [&](Index half) {
      const Index rows = kSide / 2, at = half * rows * kSide;
      gemm(false, true, rows, kSide, kSide, 1.0, left_.data() + at, kSide, right_.data(), kSide, 0.0, out_.data() + at,
           kSide);
    });
  }

  std::vector<double> numbers_, ones_, left_, right_, out_;
};

struct Measured {
  double seconds, pricing, peak_memory;
  MarginSolution solution;
};

/// Drawing the task takes more memory than solving it: the kernel is asked to forget that peak.
void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return 1024 * std::strtod(line.c_str() + 6, nullptr);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// One pass of pricing, least value a query: best of five.
double time_pricing(const MarginProblem& problem, const RowMatrix& W, Threads& threads) {
  const SingleThreadBlas single_thread;
  ScaledProblem scaled(problem, threads);
  std::vector<double> least(static_cast<std::size_t>(scaled.groups()));
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 5; ++round) {
    best = std::min(best, seconds_of([&] {
                      scaled.price(W.data(), [&](Index i, const double* logits) {
                        double top = -std::numeric_limits<double>::infinity();
                        for (Index t = 0; t < scaled.tokens(i); ++t) top = std::max(top, logits[t]);
                        least[static_cast<std::size_t>(i)] = logits[scaled.group(i).keep] - top;
                      });
                    }));
  }
  return best;
}

Measured measure(const Size& size, Threads& threads) {
  const AttentionTask task =
      generate({.law = Law::separable, .n = size.n, .T = size.T, .d = size.d, .rank = size.rank}, 1).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  Measured result{};
  forget_peak_memory();
  const SolveSettings settings{.norm = size.nuclear ? Norm::nuclear() : Norm::frobenius(),
                               .tolerance = size.nuclear && size.n <= 100 ? 1e-9 : 1e-8};
  result.seconds = seconds_of([&] { result.solution = solve(problem, settings, threads); });
  result.peak_memory = peak_memory();
  result.pricing = time_pricing(problem, result.solution.W, threads);
  return result;
}

/// When the solve had proven a gap, by its history.
double seconds_to(double gap, const MarginSolution& solution) {
  for (const SolveProgress& at : solution.history) {
    if (at.objective - at.dual_objective <= gap * at.objective) return at.seconds;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void report(const Size& size, Threads& threads) {
  Speeds best;
  { Limits().measure(threads, best); }
  const Measured result = measure(size, threads);
  { Limits().measure(threads, best); }
  const auto n = static_cast<double>(size.n), T = static_cast<double>(size.T), d = static_cast<double>(size.d);
  const double bytes = n * T * d * 8, limit = bytes / best.read + 2 * n * d * d / best.multiply;
  fmt::print("{:<20}{:>9.3f}{:>9.1f}{:>10.1e}{:>7}{:>9}{:>9.2f}{:>9.0f}%{:>8.1f}{:>8.0f}  {}{}\n",
             fmt::format("{}({},{},{}){}", size.nuclear ? "nuc " : "", size.n, size.T, size.d,
                         size.rank > 0 ? fmt::format(" r{}", size.rank) : ""),
             result.seconds, result.seconds / limit, result.solution.gap, result.solution.iterations,
             result.solution.support, result.peak_memory / bytes, 100 * limit / result.pricing, best.read / 1e9,
             best.multiply / 1e9, result.solution.method,
             result.solution.status == MarginStatus::optimal ? "" : ", not proven");
  if (size.nuclear) {
    fmt::print("{:<20}rank {}{}, {:.1f} limit passes to a gap of 1e-6\n", "", result.solution.rank.rank,
               result.solution.rank.certified ? ", certified" : "", seconds_to(1e-6, result.solution) / limit);
  }
  if (result.solution.method ==
      "interior point") {  // its own limit: 25 normal matrices and their factors at GEMM speed
    const double half = d * (d + 1) / 2, unknowns = d * d;
    const double floor = 25 * (2 * half * half * n + unknowns * unknowns * unknowns / 3) / best.multiply;
    fmt::print("{:<20}{:>9.3f} s for 25 normal matrices and factors at the same speed: {:.2f} times that\n", "", floor,
               result.seconds / floor);
  }
}

double solve_seconds(const Size& size, Threads& threads) {
  std::vector<double> seconds;
  const AttentionTask task = generate({.law = Law::separable, .n = size.n, .T = size.T, .d = size.d}, 1).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  for (int round = 0; round < 3; ++round) seconds.push_back(seconds_of([&] { solve(problem, {}, threads); }));
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

/// How time grows with each size: the exponent between a size and four times it, the others fixed.
void print_growth(Threads& threads) {
  const Size base{500, 32, 128, 0};
  const double at_base = solve_seconds(base, threads);
  const auto exponent = [&](const Size& size) { return std::log2(solve_seconds(size, threads) / at_base) / 2; };
  fmt::print("time grows like n^{:.2f} T^{:.2f} d^{:.2f} (from ({},{},{}), {:.3f} s, to four times each size)\n",
             exponent({2000, 32, 128, 0}), exponent({500, 128, 128, 0}), exponent({500, 32, 512, 0}), base.n, base.T,
             base.d, at_base);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Size> sizes;
  for (int k = 1; k < argc; ++k) {
    Size size{};
    std::string_view text = argv[k];
    size.nuclear = text.starts_with("nuc:");
    if (size.nuclear) text.remove_prefix(4);
    const int got = std::sscanf(text.data(), "%ld,%ld,%ld,%ld", &size.n, &size.T, &size.d, &size.rank);
    if (got < 3) {
      fmt::print(stderr, "{}: write n,T,d or n,T,d,rank, with nuc: before it for the nuclear norm\n", argv[k]);
      return 2;
    }
    sizes.push_back(size);
  }
  if (sizes.empty()) {
    sizes = {{100, 32, 64, 0},       {1000, 64, 256, 0},       {1000, 64, 256, 32},       {2000, 128, 384, 0},
             {2000, 128, 384, 32},   {5000, 32, 32, 0},        {5000, 32, 32, 32},        {10000, 128, 256, 0},
             {100, 32, 64, 0, true}, {1000, 64, 256, 0, true}, {1000, 64, 256, 32, true}, {2000, 128, 384, 0, true}};
  }
  fmt::print("{:<20}{:>9}{:>9}{:>10}{:>7}{:>9}{:>9}{:>10}{:>8}{:>8}\n", "(n,T,d)", "seconds", "limits", "gap", "steps",
             "support", "memory", "pricing", "GB/s", "GF/s");
  std::fflush(stdout);
  for (const Size& size : sizes) {  // a process each, so that the peak memory is its own
    const pid_t child = ::fork();
    if (child == 0) {
      Threads threads;
      report(size, threads);
      std::fflush(stdout);
      std::_Exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  if (argc == 1) {
    Threads threads;
    print_growth(threads);
  }
}
