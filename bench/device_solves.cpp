// Many small Frobenius problems on a GPU: the kernel alone, from the memory of the host to certified answers, and the
// CPU of the same machine beside them.

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "bench.h"
#include "margin/device/chunk.h"
#include "margin/device/solves.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

constexpr int kRounds = 5;  // of each measurement

struct Options {
  Size size;
  std::size_t count = 1'000'000, cpu_count = 20'000;
  int threads = 0;
};

std::vector<MarginProblem> drawn(const Options& options, Threads& threads) {
  std::vector<std::optional<MarginProblem>> drawn(options.count);
  threads.for_each(static_cast<std::int64_t>(options.count), [&](std::int64_t k) {
    const AttentionTask task =
        generate({.n = options.size.n, .T = options.size.T, .d = options.size.d}, 1, static_cast<std::uint32_t>(k))
            .task;
    drawn[static_cast<std::size_t>(k)] = MarginProblem::attention(task, optimal_tokens(task).selection);
  });
  std::vector<MarginProblem> problems;
  problems.reserve(drawn.size());
  for (std::optional<MarginProblem>& problem : drawn) problems.push_back(*std::move(problem));
  return problems;
}

/// The line of a measurement of `problems` problems at a time.
Json line_of(const char* name, const Options& options, std::size_t problems, const std::vector<double>& seconds) {
  return {{"name", name},        {"n", options.size.n},  {"T", options.size.T},
          {"d", options.size.d}, {"problems", problems}, {"seconds", divided(seconds, static_cast<double>(problems))}};
}

/// Launches with all problems in the memory of the card; their gaps are as the kernel sees them.
void measure_kernel(const Options& options, std::span<const MarginProblem> problems, Threads& threads, Cuda& cuda) {
  std::optional<SvmChunk> chunk;
  for (std::size_t k = 0; k < problems.size(); ++k) {
    const device::SvmShape shape = device_shape(problems[k], cuda.shared_memory(), RoomForAnswer::usual);
    if (shape.rows == 0) throw std::runtime_error("the kernel does not take this size");
    if (!chunk) chunk.emplace((shape.rows + device::kTeam - 1) / device::kTeam);
    chunk->add(k, shape);
  }
  std::vector<std::byte> input(chunk->input_bytes());
  std::vector<double> answers(chunk->answer_bytes() / sizeof(double));
  chunk->write(problems, threads, input.data());
  Cuda::Room card_input(cuda, input.size()), card_answers(cuda, chunk->answer_bytes());
  card_input.fill(input.data(), input.size());
  device::SvmBatch batch = chunk->batch(reinterpret_cast<const std::byte*>(card_input.address()),
                                        reinterpret_cast<double*>(card_answers.address()), kDeviceGap);
  std::array<void*, 1> arguments{&batch};
  const auto launch = [&] {
    cuda.launch(fmt::format("solve_svms_{}", chunk->rounds()), static_cast<unsigned>(problems.size()), device::kTeam,
                arguments.data(), chunk->shared_bytes());
    cuda.wait();
  };
  launch();
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) seconds.push_back(seconds_of(launch));
  card_answers.read(answers.data(), chunk->answer_bytes());
  std::size_t unsolved = 0;
  double worst = 0, tries = 0;
  for (std::size_t k = 0; k < problems.size(); ++k) {
    const double* answer = chunk->answer(k, reinterpret_cast<const std::byte*>(answers.data()));
    const double gap = SvmChunk::fact(problems[k], answer, device::kGap);
    tries += SvmChunk::fact(problems[k], answer, device::kTries);
    if (gap >= 0) {
      worst = std::max(worst, gap);
    } else {
      ++unsolved;
    }
  }
  Json line = line_of("kernel alone", options, problems.size(), seconds);
  line.update({{"unsolved", unsolved},
               {"worst_gap", worst},
               {"factorisations", tries / static_cast<double>(problems.size())},
               {"input_bytes", chunk->input_bytes()},
               {"shared_bytes", chunk->shared_bytes()}});
  emit(line);
}

void measure_calls(const Options& options, std::span<const MarginProblem> problems, Threads& threads, Device device) {
  threads.set_device(device);
  MarginSolver solver(threads);
  std::span<const MarginSolution> answers = solver.solve_many(problems, {});
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round)
    seconds.push_back(seconds_of([&] { answers = solver.solve_many(problems, {}); }));
  std::size_t handed_over = 0, unsettled = 0;
  double worst = 0;
  for (const MarginSolution& answer : answers) {
    if (answer.method != kDeviceMethod) ++handed_over;
    if (is_settled(answer.status)) {
      worst = std::max(worst, answer.gap);
    } else {
      ++unsettled;
    }
  }
  std::vector<std::uint8_t> valid(problems.size(), 0);
  threads.for_each(std::ssize(problems), [&](std::int64_t at) {
    const auto k = static_cast<std::size_t>(at);
    valid[k] = verify(problems[k].task(), stored(problems[k], answers[k], kDeviceGap), {.tolerance = kDeviceGap}).valid;
  });
  Json line = line_of(device == Device::cuda ? "solve_many on a GPU" : "solve_many on the CPU", options,
                      problems.size(), seconds);
  line.update({{"threads", threads.count()},
               {"unsettled", unsettled},
               {"invalid", std::count(valid.begin(), valid.end(), 0)},
               {"worst_gap", worst}});
  if (device == Device::cuda) line["handed_over"] = handed_over;
  emit(line);
}

void run_device_solves(const Options& options) {
  Cuda* cuda = Cuda::find();
  if (cuda == nullptr) throw std::runtime_error("no GPU: " + device_report().words);
  Threads threads(options.threads);
  const std::vector<MarginProblem> problems = drawn(options, threads);
  measure_kernel(options, problems, threads, *cuda);
  measure_calls(options, problems, threads, Device::cuda);
  measure_calls(options, std::span(problems).first(std::min(problems.size(), options.cpu_count)), threads, Device::cpu);
}

}  // namespace

void add_device_solves(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = program.add_subcommand("device-solves", "Random problems of one size on a GPU, and on the CPU");
  add_size_options(*verb, options->size);
  verb->add_option("--count", options->count, "Problems");
  verb->add_option("--cpu-count", options->cpu_count, "Those of them that the CPU solves too");
  verb->add_option("--threads", options->threads, "Threads of the CPU; 0: all cores");
  verb->callback([options] { run_device_solves(*options); });
}

}  // namespace attsvm::bench
