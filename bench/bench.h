#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "attsvm/attsvm.h"

// What attsvm_bench measures. Every measurement is one line of JSON on stdout: `name`, `seconds` (samples of one unit
// of work, in the order taken) and other fields. bench/suite computes medians, ratios and shares.

namespace attsvm::internal {}
namespace attsvm {
using namespace internal;  // kernels are measured too
}

namespace attsvm::bench {

using Json = nlohmann::ordered_json;

void emit(const Json& line);

struct Size {
  Index n = 6, T = 8, d = 10;
};
void add_size_options(CLI::App& verb, Size& size);

/// The peak memory of this process since the last reset, which keeps the loading of a task, often the larger part, out
/// of the measurement.
void forget_peak_memory();
double peak_memory();

/// Bytes and operations per second of all threads: the best seen.
struct Speeds {
  double read = 0, multiply = 0;
};
void measure_speeds(Threads& threads, Speeds& best);

// Each function adds its verb to the program.
void add_batches(CLI::App& program);
void add_calls(CLI::App& program);
void add_device(CLI::App& program);
void add_device_solves(CLI::App& program);
void add_files(CLI::App& program);
void add_kernels(CLI::App& program);
void add_limits(CLI::App& program);
void add_solve(CLI::App& program);
void add_train(CLI::App& program);

}  // namespace attsvm::bench
