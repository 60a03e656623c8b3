// The code of the GPU's kernels, compiled for the CPU, against the CPU's lanes.
#include "base/simd.h"
#include "device/product_lane.h"
#include "device/split_lane.h"
#include "support.h"
#include "train/device_runs.h"
#include "train/lane_runs.h"
#include "train/update.h"

namespace attsvm {
namespace {

/// The numbers of one run in the layout of device::LaneArrays, one lane per query.
class EmulatedRun {
 public:
  EmulatedRun(const LaneShape& shape, const LaneGroup& from, bool averages, bool adam)
      : n_(shape.n),
        T_(shape.T),
        d_(shape.d),
        r_(from.r),
        dz_(from.Q != nullptr ? from.dz : 0),
        visible_(from.visible, from.visible + n_) {
    X_ = columns(from.X, T_ * d_);
    gamma_ = columns(from.gamma, T_);
    gram_ = columns(from.gram, n_);
    reach_ = columns(from.reach, r_ > 0 ? r_ : d_);
    Z_ = columns(from.Z, dz_);
    const Index width = std::max(r_, d_);
    for (std::vector<double>* array : {&added_, &g_, &change_, &m_, &u_})
      array->assign(static_cast<std::size_t>(n_ * width), 0);
    a_.assign(static_cast<std::size_t>(n_ * T_), 0);
    for (std::vector<double>* array : {&exponent_, &c_, &sum_}) array->assign(static_cast<std::size_t>(n_), 0);
    K_.fill(from.K, d_, r_, averages, adam);
    Q_.fill(from.Q, dz_, r_, averages, adam);
  }

  /// A lane for each query, made as a kernel makes it.
  template <class Lane, class Sizes>
  std::vector<Lane> lanes(const Sizes& sizes) {
    const device::Board board{g_.data(),     exponent_.data(), c_.data(),     sum_.data(),
                              gamma_.data(), gram_.data(),     added_.data(), static_cast<int>(n_),
                              reach_.data(), m_.data(),        Z_.data()};
    std::vector<Lane> all;
    for (int i = 0; i < static_cast<int>(n_); ++i) {
      Lane lane = [&] {
        if constexpr (std::is_constructible_v<Lane, Sizes, device::Board, int, int>) {
          return Lane(sizes, board, i, 0);
        } else {
          return Lane(sizes, board, i, 0, K_.view(), Q_.view());
        }
      }();
      lane.seen = static_cast<int>(visible_[static_cast<std::size_t>(i)]);
      if constexpr (std::is_same_v<Sizes, device::AnySizes>) {
        lane.x = {X_.data() + i, board.stride};
        lane.u = {(r_ > 0 ? u_ : reach_).data() + i, board.stride};
        lane.a = {a_.data() + i, board.stride};
        lane.change = {change_.data() + i, board.stride};
      } else {
        for (Index k = 0; k < T_ * d_; ++k) lane.x[static_cast<int>(k)] = X_[static_cast<std::size_t>(k * n_ + i)];
        for (Index j = 0; j < d_ && r_ == 0; ++j)
          lane.u[static_cast<int>(j)] = reach_[static_cast<std::size_t>(j * n_ + i)];
      }
      all.push_back(lane);
    }
    return all;
  }

  double g(Index i, Index j) const { return g_[static_cast<std::size_t>(j * n_ + i)]; }
  double added(Index i, Index j) const { return added_[static_cast<std::size_t>(j * n_ + i)]; }
  double c(Index i) const { return c_[static_cast<std::size_t>(i)]; }
  double K(Index k) const { return K_.theta[static_cast<std::size_t>(k)]; }
  double Q(Index k) const { return Q_.theta[static_cast<std::size_t>(k)]; }

 private:
  /// An array of the run with what belongs to it.
  struct Whole {
    std::vector<double> theta, change, squares, mean, square, block;
    void fill(const double* from, Index rows, Index cols, bool averages, bool adam) {
      if (from == nullptr) return;
      const auto size = static_cast<std::size_t>(rows * cols);
      theta.assign(from, from + size);
      change.assign(size, 0);
      squares.assign(static_cast<std::size_t>(rows), 0);
      for (std::vector<double>* memory : {&mean, &block}) memory->assign(averages || adam ? size : 0, 0);
      square.assign(adam ? size : 0, 0);
    }
    device::RunArray view() {
      const auto at = [](std::vector<double>& array) { return array.empty() ? nullptr : array.data(); };
      return {at(theta), at(change), at(squares), at(mean), at(square), at(block), 1};
    }
  };

  std::vector<double> columns(const double* from, Index size) const {
    std::vector<double> to(static_cast<std::size_t>(n_ * size));
    for (Index i = 0; i < n_; ++i) {
      for (Index k = 0; k < size; ++k) to[static_cast<std::size_t>(k * n_ + i)] = from[i * size + k];
    }
    return to;
  }

  Index n_, T_, d_, r_, dz_;
  std::vector<double> visible_, X_, gamma_, gram_, reach_, Z_, added_, g_, change_, m_, u_, a_, exponent_, c_, sum_;
  Whole K_, Q_;
};

/// Whether the CPU's lanes have fused multiply-add, so that results have the same bits.
bool same_bits() { return chosen_instructions().starts_with("AVX"); }

void expect_same(double found, double expected, double scale) {
  if (found == expected) return;  // quicker than EXPECT_EQ, for millions of numbers
  if (same_bits()) {
    EXPECT_EQ(found, expected);
  } else {
    EXPECT_NEAR(found, expected, 1e-12 * scale);
  }
}

template <class Sizes>
Sizes sizes_of(const LaneGroup& group) {
  if constexpr (std::is_same_v<Sizes, device::AnySizes>)
    return {static_cast<int>(group.n), static_cast<int>(group.T), static_cast<int>(group.d), static_cast<int>(group.r),
            static_cast<int>(group.Q != nullptr ? group.dz : 0)};
  else
    return {};
}

device::LaneRule lane_rule(const TrainSettings& settings, Index queries) {
  const StepRule rule = rule_of(settings);
  return {static_cast<int>(settings.loss), rule.kind == StepKind::steepest, rule.epsilon, static_cast<double>(queries)};
}

/// The squared norms that lanes compare with LaneGroup's, and a step of one of them.
template <class Sizes>
std::array<double, 2> squares_of(const device::QueryLane<Sizes>& lane) {
  return {lane.square(), 0};
}
template <class Sizes, bool kWhole>
std::array<double, 2> squares_of(const device::ProductLane<Sizes, kWhole>& lane) {
  return {lane.square_K(), lane.square_Q()};
}
template <class Sizes>
void move(device::QueryLane<Sizes>& lane, const TrainSettings& settings, Index queries, std::array<double, 2> squares,
          Index step) {
  lane.move(lane_rule(settings, queries), squares[0], scheduled_step(settings, step));
}
template <class Sizes>
void move(device::ProductLane<Sizes, false>& lane, const TrainSettings& settings, Index queries,
          std::array<double, 2> squares, Index step) {
  lane.move(lane_rule(settings, queries), squares[0], squares[1], scheduled_step(settings, step));
}
template <class Sizes>
void move(device::ProductLane<Sizes, true>& lane, const TrainSettings& settings, Index queries, std::array<double, 2>,
          Index step) {
  lane.move(entry_rule(settings, queries), step_size(rule_of(settings), settings, step));
}

/// Takes the steps of a run by LaneRuns and by `Lane`, and compares all numbers after each.
template <class Lane>
void expect_kernel_like_lanes(const AttentionTask& task, const TrainSettings& settings) {
  const Head head = task.head();
  const Parameters start = starting_point(task, settings, {}, head);
  const std::optional<LaneInput> input = lane_input(task, settings, head, start);
  ASSERT_TRUE(input.has_value());
  const LaneShape& shape = input->shape;
  LaneRuns run(shape, 1, settings);
  run.put(0, task, *input, start);
  const LaneGroup& group = run.group();
  const StepRule step_rule = rule_of(settings);
  EmulatedRun card(shape, group, step_rule.averages(), step_rule.kind == StepKind::adam);
  auto lanes = card.lanes<Lane>(sizes_of<typename Lane::Shape>(group));
  const device::LaneRule rule = lane_rule(settings, shape.n);
  run.evaluate();
  for (Index step = 0;; ++step) {
    for (auto& lane : lanes) lane.look(rule);
    for (auto& lane : lanes) lane.weigh(rule);
    for (auto& lane : lanes) lane.spread();
    const std::array<double, 2> squares = squares_of(lanes[0]);
    expect_same(squares[0], group.square[0], group.square[0]);
    if (group.r > 0 && (!group.whole || group.Q != nullptr)) expect_same(squares[1], group.square[1], group.square[1]);
    expect_same(lanes[0].top(), *group.top, std::abs(*group.top) + 1);
    const double way = static_cast<double>(step + 1);
    for (Index i = 0; i < shape.n; ++i) {
      expect_same(card.c(i), group.c[i], 1);
      expect_same(lanes[static_cast<std::size_t>(i)].f(), group.f[i], 1);
      for (Index j = 0; j < shape.d; ++j) expect_same(card.g(i, j), group.g[i * shape.d + j], 1);
      const Index width = group.whole ? 0 : group.r > 0 ? group.r : shape.d;
      for (Index j = 0; j < width; ++j) expect_same(card.added(i, j), group.added[i * width + j], way);
    }
    for (Index k = 0; k < shape.d * group.r; ++k) expect_same(card.K(k), group.K[k], way);
    for (Index k = 0; k < group.dz * group.r && group.Q != nullptr; ++k) expect_same(card.Q(k), group.Q[k], way);
    if (step == settings.steps || testing::Test::HasFailure()) break;
    for (auto& lane : lanes) move(lane, settings, shape.n, squares, step);
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

/// The kernels for W, and for K and Q, of the size of the published experiments, of any size, and entry by entry.
using FixedW = device::QueryLane<device::FixedSizes<6, 8, 10>>;
using FixedKQ = device::ProductLane<device::FixedSizes<6, 8, 10, 10>, false>;
using AnyW = device::QueryLane<device::AnySizes>;
using AnyKQ = device::ProductLane<device::AnySizes, false>;
using Entries = device::ProductLane<device::AnySizes, true>;

const std::vector<Loss> kLosses{Loss::logistic, Loss::exponential, Loss::linear};

TEST(DeviceLanes, KernelsDoWhatLanesDo) {
  for (const std::uint32_t seed : {1U, 3U}) {
    const AttentionTask usual = generate({.n = 6, .T = 8, .d = 10}, seed).task;
    const AttentionTask ragged = generate({.n = 5, .T = 7, .d = 9, .shortest = 2}, seed).task;
    for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
      for (const Loss loss : kLosses) {
        TrainSettings settings{
            .optimizer = optimizer, .step = 0.3, .steps = 25, .epsilon = seed == 3 ? 0.01 : 0, .loss = loss};
        expect_kernel_like_lanes<FixedW>(usual, settings);
        expect_kernel_like_lanes<AnyW>(usual, settings);
        expect_kernel_like_lanes<FixedW>(with_a_tie(usual), settings);
        settings.param = Parametrization::KQ;
        expect_kernel_like_lanes<FixedKQ>(usual, settings);
        expect_kernel_like_lanes<AnyKQ>(ragged, settings);
        settings.width = 11;  // more than two blocks of eight, and not a multiple
        expect_kernel_like_lanes<AnyKQ>(with_a_tie(usual), settings);
      }
    }
    expect_kernel_like_lanes<AnyW>(ragged, {.step = 1, .steps = 20});
    expect_kernel_like_lanes<AnyW>(with_a_tie(ragged), {.step = 1, .steps = 20});
  }
}

TEST(DeviceLanes, KernelsDoWhatLanesDoEntryByEntry) {
  const AttentionTask usual = generate({.n = 6, .T = 8, .d = 10}, 5).task;
  const AttentionTask ragged = generate({.n = 5, .T = 7, .d = 9, .shortest = 2}, 5).task;
  const std::vector<TrainSettings> optimizers{
      {.optimizer = Optimizer::steepest, .norm = Norm::largest()},
      {.optimizer = Optimizer::signum},
      {.optimizer = Optimizer::lion, .weight_decay = 0.1},
      {.optimizer = Optimizer::adam},
      {.optimizer = Optimizer::adam, .betas = {{0.5, 0.9}}, .epsilon = 0},
      {.optimizer = Optimizer::adamw, .schedule = Schedule::sqrt},
  };
  for (TrainSettings settings : optimizers) {
    settings.step = 0.05;
    settings.steps = 40;
    for (const Loss loss : kLosses) {
      settings.loss = loss;
      for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
        settings.param = param;
        expect_kernel_like_lanes<Entries>(usual, settings);
        expect_kernel_like_lanes<Entries>(with_a_tie(ragged), settings);
      }
    }
  }
}

/// Takes the steps of a run by eight turns per query, and compares with LaneRuns, whose sums have another order.
template <int kTokens, int kSlice>
void expect_split_like_lanes(const AttentionTask& task, const TrainSettings& settings) {
  using Lane = device::SplitLane<device::EightTurns, kTokens, kSlice>;
  const Head head = task.head();
  const Parameters start = starting_point(task, settings, {}, head);
  const std::optional<LaneInput> input = lane_input(task, settings, head, start, kMostDeviceNumbers);
  ASSERT_TRUE(input.has_value());
  const LaneShape& shape = input->shape;
  LaneRuns run(shape, 1, settings);
  run.put(0, task, *input, start);
  const LaneGroup& group = run.group();
  const int n = static_cast<int>(shape.n), T = static_cast<int>(shape.T), d = static_cast<int>(shape.d);
  const auto rows = static_cast<std::size_t>(n);
  std::vector<double> vectors(rows * Lane::kVectorRow), added(vectors.size()), h(rows * Lane::kTokenRow),
      exponent(rows), sum(rows), gram(group.gram, group.gram + n * n);
  const device::SplitBoard board{vectors.data(), added.data(), h.data(), exponent.data(),
                                 sum.data(),     gram.data(),  n,        n};
  std::vector<Lane> lanes(rows, Lane({}, board, 0));
  for (int i = 0; i < n; ++i) {
    Lane& lane = lanes[static_cast<std::size_t>(i)] = Lane({}, board, i);
    lane.seen = static_cast<int>(group.visible[i]);
    for (int at = 0; at < Lane::kWidth; ++at) {
      const int l = at / kSlice, j = at % kSlice;
      lane.u[j].of(l) = at < d ? group.reach[i * d + at] : 0;
      for (int t = 0; t < kTokens; ++t) lane.x[t][j].of(l) = at < d && t < T ? group.X[(i * T + t) * d + at] : 0;
    }
    for (int t = 0; t < Lane::kPadded; ++t) {
      lane.gamma[t % Lane::kOwn].of(t / Lane::kOwn) = t < T ? group.gamma[i * T + t] : 0;
    }
  }
  const device::LaneRule rule = lane_rule(settings, shape.n);
  run.evaluate();
  for (Index step = 0;; ++step) {
    for (Lane& lane : lanes) lane.look(rule);
    for (Lane& lane : lanes) lane.weigh(rule);
    for (Lane& lane : lanes) lane.spread();
    const double square = lanes[0].square();
    ASSERT_NEAR(square, *group.square, 1e-11 * *group.square) << step;
    ASSERT_NEAR(lanes[0].top(), *group.top, 1e-12 * std::abs(*group.top));
    for (int i = 0; i < n; ++i) {
      const Lane& lane = lanes[static_cast<std::size_t>(i)];
      ASSERT_NEAR(lane.f(), group.f[i], 1e-12);
      ASSERT_NEAR(lane.c(), group.c[i], 1e-11 * group.c[i]);
      for (int j = 0; j < d; ++j) {
        ASSERT_NEAR(lane.g(j / kSlice, j % kSlice), group.g[i * d + j], 1e-11);
        ASSERT_NEAR(added[static_cast<std::size_t>(i * Lane::kVectorRow + j % kSlice * device::kEight + j / kSlice)],
                    group.added[i * d + j], 1e-12 * static_cast<double>(step + 1));
      }
    }
    if (step == settings.steps) break;
    for (Lane& lane : lanes) lane.move(rule, square, scheduled_step(settings, step));
    run.advance(scheduled_step(settings, step), step);
    run.evaluate();
  }
}

TEST(DeviceLanes, EightThreadsPerQueryDoWhatLanesDo) {
  for (const Loss loss : kLosses) {
    const TrainSettings settings{.step = 0.2, .steps = 30, .loss = loss};
    const AttentionTask usual = generate({.n = 30, .T = 16, .d = 32}, 3).task;
    expect_split_like_lanes<16, 4>(usual, settings);
    const AttentionTask ragged = generate({.n = 7, .T = 18, .d = 29, .shortest = 2}, 3).task;
    expect_split_like_lanes<20, 4>(ragged, settings);
    expect_split_like_lanes<20, 4>(with_a_tie(ragged), settings);
  }
  expect_split_like_lanes<20, 4>(generate({.n = 10, .T = 20, .d = 32}, 3).task,
                                 {.optimizer = Optimizer::gd, .steps = 50});
}

TEST(DeviceLanes, SaturatedRunsKeepTheirBits) {
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 4).task;
  TrainSettings settings{.step = 50, .steps = 150};
  expect_kernel_like_lanes<FixedW>(task, settings);
  settings.optimizer = Optimizer::adam;  // gradients down to e^{-10000} and less
  settings.epsilon = 0;
  expect_kernel_like_lanes<Entries>(task, settings);
  settings.optimizer = Optimizer::signum;
  expect_kernel_like_lanes<Entries>(task, settings);
  settings.optimizer = Optimizer::ngd;
  settings.step = 3;
  settings.param = Parametrization::KQ;
  expect_kernel_like_lanes<FixedKQ>(task, settings);
}

}  // namespace
}  // namespace attsvm
