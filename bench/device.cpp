// Batches on a GPU: what they reach end to end and in the kernels alone, what the card can do at most, and the CPU.

#include "attsvm/device.h"

#include <fmt/format.h>

#include <array>
#include <stdexcept>

#include "bench.h"
#include "device/cuda.h"
#include "measure.h"
#include "train/optimizers.h"

namespace attsvm::bench {
namespace {

struct Options {
  Size size;
  std::string param = "W", optimizer = "ngd";
  std::uint32_t count = 100'000, cpu_count = 2'000;
  Index steps = 1000;
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
      const double before = cuda.busy();
      cuda.launch(kernel, kBlocks, kThreads, arguments.data());
      cuda.wait();
      best = std::max(best, work / (cuda.busy() - before));
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

void measure_training(const Options& options) {
  Cuda& cuda = card();
  Threads gpu, cpu;
  gpu.set_device(Device::cuda);
  cpu.set_device(Device::cpu);
  const Size& size = options.size;
  std::vector<AttentionTask> tasks(options.count, generate({.n = size.n, .T = size.T, .d = size.d}, 1, 0).task);
  gpu.for_each(std::ssize(tasks), [&](Index k) {
    const auto instance = static_cast<std::uint32_t>(k);
    tasks[instance] = generate({.n = size.n, .T = size.T, .d = size.d}, 1, instance).task;
  });
  const TrainSettings settings = settings_of(options);
  TrainSettings brief = settings;
  brief.steps = 2;
  train_many(std::span(tasks).first(std::min<std::size_t>(tasks.size(), 10'000)), brief, gpu);  // warms up
  std::vector<double> whole, kernel;
  const DeviceCounts before = device_counts();
  for (int round = 0; round < options.rounds; ++round) {
    const double busy = cuda.busy();
    whole.push_back(seconds_of([&] { train_many(tasks, settings, gpu); }));
    kernel.push_back(cuda.busy() - busy);
  }
  const std::span<const AttentionTask> few = std::span(tasks).first(std::min(options.count, options.cpu_count));
  std::vector<double> alone;
  for (int round = 0; round < options.rounds; ++round)
    alone.push_back(seconds_of([&] { train_many(few, settings, cpu); }));
  const double steps = static_cast<double>(options.steps), work = steps * options.count;
  emit({{"name", "device"},
        {"device", device_report().name},
        {"param", options.param},
        {"optimizer", options.optimizer},
        {"instances", options.count},
        {"steps", options.steps},
        {"on_gpu", device_counts().on_gpu - before.on_gpu},
        {"seconds", divided(whole, work)},
        {"kernel_seconds", divided(kernel, work)},
        {"cpu_seconds", divided(alone, steps * static_cast<double>(few.size()))},
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
  verb->add_option("--cpu-count", options->cpu_count, "Instances on the CPU");
  verb->add_option("--steps", options->steps, "Steps of each");
  verb->add_option("--rounds", options->rounds, "Samples");
  verb->callback([options] { measure_training(*options); });
}

}  // namespace attsvm::bench
