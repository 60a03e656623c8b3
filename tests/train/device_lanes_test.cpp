// The code of the GPU's kernels, compiled for the CPU, against the CPU's lanes; and, where there is a GPU, the GPU.
#include "attsvm/device.h"
#include "base/simd.h"
#include "device/query_lane.h"
#include "support.h"
#include "train/device_runs.h"
#include "train/lane_runs.h"
#include "train/update.h"

namespace attsvm {
namespace {

/// The numbers of one run in the layout of device::LaneArrays, one lane per query.
class EmulatedRun {
 public:
  EmulatedRun(const LaneShape& shape, const LaneGroup& from)
      : n_(shape.n), T_(shape.T), d_(shape.d), visible_(from.visible, from.visible + n_) {
    X_ = columns(from.X, T_ * d_);
    gamma_ = columns(from.gamma, T_);
    gram_ = columns(from.gram, n_);
    u_ = columns(from.reach, d_);
    for (std::vector<double>* array : {&added_, &g_, &change_}) array->assign(static_cast<std::size_t>(n_ * d_), 0);
    a_.assign(static_cast<std::size_t>(n_ * T_), 0);
    for (std::vector<double>* array : {&exponent_, &c_, &sum_}) array->assign(static_cast<std::size_t>(n_), 0);
  }

  /// Calls use(lane) for a lane of each query, in the same way as a kernel makes them.
  template <class Sizes>
  std::vector<device::QueryLane<Sizes>> lanes(const Sizes& sizes) {
    const device::Board board{g_.data(),     exponent_.data(), c_.data(),     sum_.data(),
                              gamma_.data(), gram_.data(),     added_.data(), static_cast<int>(n_)};
    std::vector<device::QueryLane<Sizes>> all;
    for (int i = 0; i < static_cast<int>(n_); ++i) {
      device::QueryLane<Sizes> lane(sizes, board, i, 0);
      lane.seen = static_cast<int>(visible_[static_cast<std::size_t>(i)]);
      if constexpr (std::is_same_v<Sizes, device::AnySizes>) {
        lane.x = {X_.data() + i, board.stride};
        lane.u = {u_.data() + i, board.stride};
        lane.a = {a_.data() + i, board.stride};
        lane.change = {change_.data() + i, board.stride};
      } else {
        for (Index k = 0; k < T_ * d_; ++k) lane.x[static_cast<int>(k)] = X_[static_cast<std::size_t>(k * n_ + i)];
        for (Index j = 0; j < d_; ++j) lane.u[static_cast<int>(j)] = u_[static_cast<std::size_t>(j * n_ + i)];
      }
      all.push_back(lane);
    }
    return all;
  }

  double g(Index i, Index j) const { return g_[static_cast<std::size_t>(j * n_ + i)]; }
  double added(Index i, Index j) const { return added_[static_cast<std::size_t>(j * n_ + i)]; }
  double c(Index i) const { return c_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<double> columns(const double* from, Index size) const {
    std::vector<double> to(static_cast<std::size_t>(n_ * size));
    for (Index i = 0; i < n_; ++i) {
      for (Index k = 0; k < size; ++k) to[static_cast<std::size_t>(k * n_ + i)] = from[i * size + k];
    }
    return to;
  }

  Index n_, T_, d_;
  std::vector<double> visible_, X_, gamma_, gram_, u_, added_, g_, change_, a_, exponent_, c_, sum_;
};

/// Whether the CPU's lanes have fused multiply-add, so that results have the same bits.
bool same_bits() { return chosen_instructions().starts_with("AVX"); }

void expect_same(double found, double expected, double scale) {
  if (same_bits()) {
    EXPECT_EQ(found, expected);
  } else {
    EXPECT_NEAR(found, expected, 1e-12 * scale);
  }
}

template <class Sizes>
Sizes sizes_of(const LaneShape& shape) {
  if constexpr (std::is_same_v<Sizes, device::AnySizes>)
    return {static_cast<int>(shape.n), static_cast<int>(shape.T), static_cast<int>(shape.d)};
  else
    return {};
}

template <class Sizes>
void expect_kernel_like_lanes(const AttentionTask& task, const TrainSettings& settings) {
  const Head head = task.head();
  const Parameters start = starting_point(task, settings, {}, head);
  const std::optional<LaneInput> input = lane_input(task, settings, head, start);
  ASSERT_TRUE(input.has_value());
  const LaneShape& shape = input->shape;
  LaneRuns run(shape, 1, settings);
  run.put(0, task, *input, start);
  EmulatedRun card(shape, run.group());
  auto lanes = card.lanes(sizes_of<Sizes>(shape));
  const StepRule step_rule = rule_of(settings);
  const device::LaneRule rule{static_cast<int>(settings.loss), step_rule.kind == StepKind::steepest, step_rule.epsilon,
                              static_cast<double>(shape.n)};
  run.evaluate();
  for (Index step = 0;; ++step) {
    for (auto& lane : lanes) lane.look(rule);
    for (auto& lane : lanes) lane.weigh(rule);
    for (auto& lane : lanes) lane.spread();
    const double square = lanes[0].square();
    const LaneGroup& group = run.group();
    expect_same(square, *group.square, *group.square);
    expect_same(lanes[0].top(), *group.top, std::abs(*group.top) + 1);
    for (Index i = 0; i < shape.n; ++i) {
      expect_same(card.c(i), group.c[i], 1);
      expect_same(lanes[static_cast<std::size_t>(i)].f(), group.f[i], 1);
      for (Index j = 0; j < shape.d; ++j) {
        expect_same(card.g(i, j), group.g[i * shape.d + j], 1);
        expect_same(card.added(i, j), group.added[i * shape.d + j], static_cast<double>(step + 1));
      }
    }
    if (step == settings.steps || testing::Test::HasFailure()) break;
    for (auto& lane : lanes) lane.move(rule, square, scheduled_step(settings, step));
    run.advance(scheduled_step(settings, step), step);
    run.evaluate();
  }
}

/// Two tokens of every sequence score the same.
AttentionTask with_a_tie(const AttentionTask& task) {
  TaskArrays arrays = task.arrays();
  const std::span<const double> tokens = f64_span(arrays.tokens);
  std::vector<double> values(tokens.begin(), tokens.end());
  const Index d = task.value_size();
  for (Index s = 0; s < task.sequences(); ++s) {
    std::copy_n(values.begin() + task.offset(s) * d, d, values.begin() + (task.offset(s) + 1) * d);
  }
  arrays.keys = arrays.tokens;
  arrays.tokens = Array::own(values, arrays.tokens.shape);
  return AttentionTask(arrays);
}

using Published = device::FixedSizes<6, 8, 10>;

TEST(DeviceLanes, KernelsDoWhatLanesDo) {
  for (const std::uint32_t seed : {1U, 3U}) {
    const AttentionTask usual = generate({.n = 6, .T = 8, .d = 10}, seed).task;
    for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
      for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
        const TrainSettings settings{
            .optimizer = optimizer, .step = 0.3, .steps = 25, .epsilon = seed == 3 ? 0.01 : 0, .loss = loss};
        expect_kernel_like_lanes<Published>(usual, settings);
        expect_kernel_like_lanes<device::AnySizes>(usual, settings);
        expect_kernel_like_lanes<Published>(with_a_tie(usual), settings);
      }
    }
    const AttentionTask ragged = generate({.n = 5, .T = 7, .d = 9, .shortest = 2}, seed).task;
    expect_kernel_like_lanes<device::AnySizes>(ragged, {.step = 1, .steps = 20});
    expect_kernel_like_lanes<device::AnySizes>(with_a_tie(ragged), {.step = 1, .steps = 20});
  }
}

TEST(DeviceLanes, SaturatedRunsKeepTheirBits) {
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 4).task;
  expect_kernel_like_lanes<Published>(task, {.step = 50, .steps = 150});
}

TEST(DeviceLanes, AGpuGivesTheBitsOfTheCpu) {
  if (!device_report().found) GTEST_SKIP() << "no GPU to test: " << device_report().words;
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < 300; ++k) tasks.push_back(generate({.n = 6, .T = 8, .d = 10}, 7, k).task);
  for (std::uint32_t k = 0; k < 100; ++k) tasks.push_back(generate({.n = 9, .T = 5, .d = 7, .shortest = 2}, 8, k).task);
  for (std::uint32_t k = 0; k < 20; ++k) tasks.push_back(generate({.n = 60, .T = 5, .d = 7}, 8, k).task);
  for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
    const TrainSettings settings{.optimizer = optimizer, .steps = 700, .record = {.at = {0, 3, 500, 700}}};
    Threads cpu, gpu;
    cpu.set_device(Device::cpu);
    gpu.set_device(Device::cuda);
    const auto a = train_many(tasks, settings, cpu), b = train_many(tasks, settings, gpu);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      ASSERT_EQ(a[k].W, b[k].W) << k;
      ASSERT_EQ(a[k].steps, b[k].steps);
      ASSERT_EQ(a[k].stop, b[k].stop);
      ASSERT_EQ(a[k].records.size(), b[k].records.size());
      for (std::size_t r = 0; r < a[k].records.size(); ++r) {
        ASSERT_EQ(a[k].records[r].log_gradient, b[k].records[r].log_gradient);
        ASSERT_EQ(a[k].records[r].log_loss, b[k].records[r].log_loss);
      }
    }
  }
}

}  // namespace
}  // namespace attsvm
