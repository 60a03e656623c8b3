// Batches on a GPU against the same batches on the CPU; skipped where there is none (make test-device).
#include "train/device_runs.h"

#include "attsvm/device.h"
#include "base/simd.h"
#include "support.h"

namespace attsvm {
namespace {

class DeviceBatches : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_report().found) GTEST_SKIP() << "no GPU to test: " << device_report().words;
    if (!chosen_instructions().starts_with("AVX")) GTEST_SKIP() << "this CPU has no fused multiply-add";
    cpu_.set_device(Device::cpu);
    gpu_.set_device(Device::cuda);
  }

  std::vector<TrainedRun> on_gpu(std::span<const AttentionTask> tasks, const TrainSettings& settings) {
    return train_many(tasks, settings, gpu_);
  }
  /// Whether, since `before`, the GPU has computed nearly all of `runs` (scores may be too close), and the CPU the
  /// rest.
  static bool most_on_gpu(const DeviceCounts& before, std::size_t runs) {
    const std::size_t gpu = device_counts().on_gpu - before.on_gpu, cpu = device_counts().on_cpu - before.on_cpu;
    return gpu + cpu == runs && gpu >= runs * 8 / 10;
  }
  std::vector<TrainedRun> on_cpu(std::span<const AttentionTask> tasks, const TrainSettings& settings) {
    return train_many(tasks, settings, cpu_);
  }

  Threads cpu_, gpu_;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_same_run(const TrainedRun& a, const TrainedRun& b) {
  ASSERT_EQ(a.W, b.W);
  ASSERT_EQ(a.K, b.K);
  ASSERT_EQ(a.Q, b.Q);
  ASSERT_EQ(a.steps, b.steps);
  ASSERT_EQ(a.stop, b.stop);
  ASSERT_EQ(a.records.size(), b.records.size());
  for (std::size_t r = 0; r < a.records.size(); ++r) {
    ASSERT_EQ(a.records[r].step, b.records[r].step);
    ASSERT_EQ(a.records[r].W, b.records[r].W);
    ASSERT_PRED2(same, a.records[r].log_gradient, b.records[r].log_gradient);
    ASSERT_PRED2(same, a.records[r].log_loss, b.records[r].log_loss);
  }
}

void expect_same_runs(const std::vector<TrainedRun>& a, const std::vector<TrainedRun>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size() && !testing::Test::HasFatalFailure(); ++k) {
    SCOPED_TRACE(k);
    expect_same_run(a[k], b[k]);
  }
}

std::vector<AttentionTask> drawn(const Recipe& settings, std::uint32_t count) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < count; ++k) tasks.push_back(generate(settings, 7, k).task);
  return tasks;
}

/// Runs of several shapes: that of a kernel of its own, ragged ones, prompts, and one block per run.
std::vector<AttentionTask> assorted(std::uint32_t count) {
  std::vector<AttentionTask> all;
  for (const Recipe& settings : {Recipe{.n = 6, .T = 8, .d = 10},
                                 {.n = 9, .T = 5, .d = 7, .shortest = 2},
                                 {.n = 4, .T = 6, .d = 5, .pattern = QueryPattern::prompt},
                                 {.n = 60, .T = 5, .d = 7}}) {
    for (AttentionTask& task : drawn(settings, count)) all.push_back(std::move(task));
  }
  return all;
}

/// What the GPU trains: every optimizer with W, and with K and Q.
std::vector<TrainSettings> all_kernels(Index steps) {
  std::vector<TrainSettings> all{
      {.optimizer = Optimizer::ngd, .epsilon = 1e-3},
      {.optimizer = Optimizer::gd},
      {.optimizer = Optimizer::steepest, .norm = Norm::largest(), .step = 0.02},
      {.optimizer = Optimizer::signum, .step = 0.02},
      {.optimizer = Optimizer::lion, .step = 0.02, .weight_decay = 0.01},
      {.optimizer = Optimizer::adam, .step = 0.02},
      {.optimizer = Optimizer::adamw, .step = 0.02, .schedule = Schedule::cosine},
      {.loss = Loss::exponential},
      {.loss = Loss::linear},
  };
  for (std::size_t k = 0, count = all.size(); k < count; ++k) {
    all[k].steps = steps;
    all[k].record = {.at = {0, 1, steps - 1, steps}};
    all.push_back(all[k]);
    all.back().param = Parametrization::KQ;
  }
  return all;
}

TEST_F(DeviceBatches, GiveTheBitsOfTheCpu) {
  const std::vector<AttentionTask> tasks = assorted(40);
  for (const TrainSettings& settings : all_kernels(300)) {
    const DeviceCounts before = device_counts();
    expect_same_runs(on_gpu(tasks, settings), on_cpu(tasks, settings));
    if (HasFatalFailure()) FAIL() << name_of(settings.optimizer) << " " << name_of(settings.param);
    EXPECT_TRUE(most_on_gpu(before, tasks.size()));
  }
}

// For compute-sanitizer, under which every instruction takes long.
TEST_F(DeviceBatches, GiveTheBitsOfTheCpuInFewSteps) {
  const std::vector<AttentionTask> tasks = assorted(7);
  for (const TrainSettings& settings : all_kernels(4))
    expect_same_runs(on_gpu(tasks, settings), on_cpu(tasks, settings));
}

TEST_F(DeviceBatches, TakeTheFixtures) {
  std::vector<AttentionTask> tasks;
  for (const std::string& path : test::fixture_tasks()) {
    AttentionTask task = load_task(path, cpu_);
    if (task.head().kind != HeadKind::none) tasks.push_back(std::move(task));
  }
  const DeviceCounts before = device_counts();
  for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
    const TrainSettings settings{.param = param, .steps = 200, .record = {.at = {0, 100, 200}}};
    std::vector<AttentionTask> fitting;  // a prompt has no K and Q
    for (const AttentionTask& task : tasks)
      if (param == Parametrization::W || task.query_size() > 1) fitting.push_back(task);
    expect_same_runs(on_gpu(fitting, settings), on_cpu(fitting, settings));
  }
  EXPECT_GT(device_counts().on_gpu, before.on_gpu);
}

TEST_F(DeviceBatches, DoNotDependOnHowTheyAreSplit) {
  const std::vector<AttentionTask> tasks = assorted(30);
  for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
    const TrainSettings settings{.param = param, .steps = 100, .init = Init::zero};
    const std::vector<TrainedRun> together = on_gpu(tasks, settings);
    expect_same_runs(on_gpu(tasks, settings), together);
    for (std::size_t first = 0, size = 1; first < tasks.size(); first += size, size = 2 * size + 1) {
      const std::size_t count = std::min(size, tasks.size() - first);
      const std::vector<TrainedRun> apart = on_gpu(std::span(tasks).subspan(first, count), settings);
      for (std::size_t k = 0; k < count; ++k) expect_same_run(apart[k], together[first + k]);
    }
  }
}

TEST_F(DeviceBatches, KeepTheirBitsFarIntoSaturation) {
  const std::vector<AttentionTask> tasks = drawn({.n = 6, .T = 8, .d = 10}, 50);
  for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::adam}) {
    const TrainSettings settings{
        .optimizer = optimizer, .step = 20, .steps = 2000, .epsilon = 0, .record = {.at = {0, 1000, 2000}}};
    expect_same_runs(on_gpu(tasks, settings), on_cpu(tasks, settings));
  }
}

// Sizes that the CPU trains in other ways than in lanes, so that rounding differs.
TEST_F(DeviceBatches, AgreeWithTheCpuOnLargerTasks) {
  for (const Recipe& size : {Recipe{.n = 10, .T = 20, .d = 32}, {.n = 30, .T = 16, .d = 32}}) {
    const std::vector<AttentionTask> tasks = drawn(size, 20);
    for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
      const TrainSettings settings{.param = param, .steps = 100};
      const DeviceCounts before = device_counts();
      const std::vector<TrainedRun> a = on_gpu(tasks, settings), b = on_cpu(tasks, settings);
      EXPECT_TRUE(most_on_gpu(before, tasks.size()));
      for (std::size_t k = 0; k < tasks.size(); ++k) EXPECT_LE((a[k].W - b[k].W).norm(), 1e-12 * b[k].W.norm());
    }
  }
}

TEST_F(DeviceBatches, GoToTheCpuWhileTheCardIsFull) {
  const std::vector<AttentionTask> tasks = assorted(20);
  const TrainSettings settings{.steps = 50};
  const std::vector<TrainedRun> expected = on_cpu(tasks, settings);
  {
    std::vector<Cuda::Room> taken;
    for (std::size_t size = Cuda::find()->free_memory(); size >= 4096;) {
      try {
        taken.emplace_back(*Cuda::find(), size);
      } catch (const DeviceError&) {
        size /= 2;
      }
    }
    const DeviceCounts before = device_counts();
    expect_same_runs(on_gpu(tasks, settings), expected);
    EXPECT_EQ(device_counts().on_gpu, before.on_gpu);
    EXPECT_EQ(device_counts().on_cpu - before.on_cpu, tasks.size());
  }
  const DeviceCounts before = device_counts();
  expect_same_runs(on_gpu(tasks, settings), expected);
  EXPECT_TRUE(most_on_gpu(before, tasks.size()));
}

// For scripts/test_device, which kills it.
TEST_F(DeviceBatches, DISABLED_TrainForEver) {
  TrainSettings settings{.steps = 1'000'000'000};
  settings.progress = [](const TrainProgress& now) {
    if (now.step > 0 && now.step <= 256) std::printf("%d steps\n", static_cast<int>(now.step));
    std::fflush(stdout);
    return false;
  };
  on_gpu(assorted(1000), settings);
}

TEST_F(DeviceBatches, StopWhenAsked) {
  const std::vector<AttentionTask> tasks = assorted(5);
  TrainSettings settings{.steps = 1'000'000'000};
  settings.progress = [](const TrainProgress& now) { return now.step >= 512; };
  for (const TrainedRun& run : on_gpu(tasks, settings)) {
    EXPECT_EQ(run.stop, TrainStop::asked);
    EXPECT_EQ(run.steps, 512);
  }
}

}  // namespace
}  // namespace attsvm
