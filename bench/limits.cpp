// The limits of this machine: reading numbers from memory, and matrix products.

#include "base/blas.h"
#include "base/kernels/stream.h"
#include "bench.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

/// A dot product over 1.3 GB of numbers, and a 2000 × 2000 × 2000 matrix product in two parts.
class Probe {
 public:
  Probe() : numbers_(kChunks * kChunk, 1e-3), ones_(kRow, 1.0), left_(kSide * kSide, 1.0), right_(left_), out_(left_) {}

  void measure(Threads& threads, Speeds& best) {
    const SingleThreadBlas single_thread;
    for (int round = 0; round < 3; ++round) {
      const double reading = seconds_of([&] { read(threads); });
      best.read = std::max(best.read, static_cast<double>(numbers_.size()) * 8 / reading);
      const double multiplying = seconds_of([&] { multiply(threads); });
      best.multiply = std::max(best.multiply, 2.0 * kSide * kSide * kSide / multiplying);
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
    const Index parts = threads.count();
    threads.for_each(parts, [&](Index part) {
      const Index first = kSide * part / parts, rows = kSide * (part + 1) / parts - first, at = first * kSide;
      gemm(false, true, rows, kSide, kSide, 1.0, left_.data() + at, kSide, right_.data(), kSide, 0.0, out_.data() + at,
           kSide);
    });
  }

  std::vector<double> numbers_, ones_, left_, right_, out_;
};

}  // namespace

void measure_speeds(Threads& threads, Speeds& best) { Probe().measure(threads, best); }

void add_limits(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("limits", "Speed of reading memory and of matrix products");
  auto threads = std::make_shared<int>(0);
  verb->add_option("--threads", *threads, "Threads; 0: all cores");
  verb->callback([threads] {
    Threads pool(*threads);
    Speeds best;
    measure_speeds(pool, best);
    emit({{"name", "limits"}, {"threads", pool.count()}, {"read", best.read}, {"multiply", best.multiply}});
  });
}

}  // namespace attsvm::bench
