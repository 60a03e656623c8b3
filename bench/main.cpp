#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>

#include "bench.h"

namespace attsvm::bench {

void emit(const Json& line) {
  fmt::print("{}\n", line.dump());
  std::fflush(stdout);
}

void add_size_options(CLI::App& verb, Size& size) {
  verb.add_option("--n", size.n, "Sequences");
  verb.add_option("--T", size.T, "Tokens per sequence");
  verb.add_option("--d", size.d, "Dimension of a token");
}

void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << 5; }

double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return 1024 * std::strtod(line.c_str() + 6, nullptr);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace attsvm::bench

namespace {

int run(int argc, char** argv) {
  using namespace attsvm::bench;
  CLI::App program("Measurements as lines of JSON; bench/run makes tables of them");
  program.require_subcommand(1);
  for (const auto add : {add_limits, add_kernels, add_files, add_solve, add_batches, add_train, add_calls, add_device,
                         add_device_solves})
    add(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "attsvm_bench: %s\n", error.what());
    return 1;
  }
}
