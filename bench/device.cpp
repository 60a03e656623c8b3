// Batches on a GPU: what they reach end to end and in the kernels alone, what the card can do at most, and the CPU.

#include "attsvm/device.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "bench.h"
#include "device/cuda.h"
#include "measure.h"
#include "train/lane_runs.h"
#include "train/optimizers.h"

namespace attsvm::bench {
namespace {

struct Options {
  Size size;
  std::string param = "W", optimizer = "ngd";
  std::uint32_t count = 100'000, kernel_count = 31'680, cpu_count = 2'000;
  Index steps = 1000, kernel_steps = 10'000;
  int rounds = 3;
};

Cuda& card() {
  Cuda* cuda = Cuda::find();
  if (cuda == nullptr)
    throw std::runtime_error("this measures a GPU: it needs a card and its driver; found " + device_report().words);
  return *cuda;
}

/// Multiply-adds in registers, and a pass over 8 GB.
void measure_limits() {
  Cuda& cuda = card();
  constexpr unsigned kBlocks = 132 * 16, kThreads = 256;
  constexpr long long kPairs = 1LL << 29;
  const Cuda::Room out(cuda, kBlocks * kThreads * sizeof(double)), numbers(cuda, kPairs * 2 * sizeof(double));
  std::uint64_t to = out.address(), from = numbers.address();
  int rounds = 20'000;
  double factor = 0.999;
  long long pairs = kPairs;
  std::array<void*, 3> multiply{&to, &rounds, &factor}, read{&to, &from, &pairs};
  const auto rate = [&](const char* kernel, std::array<void*, 3>& arguments, double work) {
    double best = 0;
    for (int round = 0; round < 5; ++round) {
      const double seconds = seconds_of([&] {
        cuda.launch(kernel, kBlocks, kThreads, arguments.data());
        cuda.wait();
      });
      best = std::max(best, work / seconds);
    }
    return best;
  };
  emit({{"name", "device limits"},
        {"device", device_report().name},
        {"multiply", rate("limit_multiply", multiply, 32.0 * rounds * kBlocks * kThreads)},
        {"read", rate("limit_read", read, 16.0 * static_cast<double>(kPairs))}});
}

TrainSettings settings_of(const Options& options) {
  TrainSettings settings{.param = options.param == "KQ" ? Parametrization::KQ : Parametrization::W,
                         .steps = options.steps};
  const std::string refusal = set_optimizer(options.optimizer, settings);
  if (!refusal.empty()) throw std::runtime_error("--optimizer must be " + refusal);
  return settings;
}

std::vector<AttentionTask> drawn(const Options& options, Threads& threads) {
  const Recipe recipe{.n = options.size.n, .T = options.size.T, .d = options.size.d};
  std::vector<AttentionTask> tasks(options.count, generate(recipe, 1, 0).task);
  threads.for_each(std::ssize(tasks), [&](Index k) {
    tasks[static_cast<std::size_t>(k)] = generate(recipe, 1, static_cast<std::uint32_t>(k)).task;
  });
  return tasks;
}

/// Seconds per step and run of `rounds` calls; the results are freed outside.
std::vector<double> times(std::span<const AttentionTask> tasks, const TrainSettings& settings, Threads& threads,
                          int rounds) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    std::vector<TrainedRun> runs;
    seconds.push_back(seconds_of([&] { runs = train_many(tasks, settings, threads); }));
  }
  return divided(seconds, static_cast<double>(settings.steps) * static_cast<double>(tasks.size()));
}

void measure_training(const Options& options) {
  card();
  Threads gpu, cpu;
  gpu.set_device(Device::cuda);
  cpu.set_device(Device::cpu);
  const std::vector<AttentionTask> tasks = drawn(options, gpu);
  const auto first = [&](std::size_t count) { return std::span(tasks).first(std::min(count, tasks.size())); };
  TrainSettings settings = settings_of(options);
  times(first(10'000), settings_of({.steps = 2}), gpu, 1);  // warms up
  const DeviceCounts before = device_counts();
  const std::vector<double> whole = times(tasks, settings, gpu, options.rounds);
  const std::uint64_t on_gpu = (device_counts().on_gpu - before.on_gpu) / static_cast<std::uint64_t>(options.rounds);
  const std::vector<double> alone = times(first(options.cpu_count), settings, cpu, options.rounds);
  // The kernels alone: the difference of two runs so long that the host's work hides behind them, of tasks
  // of which the GPU leaves none to the CPU.
  std::vector<AttentionTask> taken;
  for (const AttentionTask& task : first(2 * options.kernel_count)) {
    const Head head = task.head();
    const Parameters start = starting_point(task, settings, {}, head);
    if (taken.size() < options.kernel_count && lane_input(task, settings, head, start, kMostDeviceNumbers))
      taken.push_back(task);
  }
  settings.steps = options.kernel_steps;
  std::vector<double> kernel = times(taken, settings, gpu, options.rounds);
  settings.steps = 2 * options.kernel_steps;
  const std::vector<double> lengthy = times(taken, settings, gpu, options.rounds);
  for (std::size_t k = 0; k < kernel.size(); ++k) kernel[k] = 2 * lengthy[k] - kernel[k];
  emit({{"name", "device"},
        {"device", device_report().name},
        {"param", options.param},
        {"optimizer", options.optimizer},
        {"instances", options.count},
        {"steps", options.steps},
        {"on_gpu", on_gpu},
        {"seconds", whole},
        {"kernel_seconds", kernel},
        {"cpu_seconds", alone},
        {"threads", cpu.count()}});
}

}  // namespace

void add_device(CLI::App& program) {
  CLI::App* limits = program.add_subcommand("device-limits", "What the GPU can do at most");
  limits->callback([] { measure_limits(); });
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      program.add_subcommand("device", "Many small runs on the GPU, per step and instance, and on the CPU");
  add_size_options(*verb, options->size);
  verb->add_option("--param", options->param, "W or KQ");
  verb->add_option("--optimizer", options->optimizer, "As attsvm train takes it");
  verb->add_option("--count", options->count, "Instances");
  verb->add_option("--kernel-count", options->kernel_count, "Instances of the long runs that time the kernels alone");
  verb->add_option("--kernel-steps", options->kernel_steps, "Steps of the shorter of them");
  verb->add_option("--cpu-count", options->cpu_count, "Instances on the CPU");
  verb->add_option("--steps", options->steps, "Steps of each");
  verb->add_option("--rounds", options->rounds, "Samples");
  verb->callback([options] { measure_training(*options); });
}

}  // namespace attsvm::bench
