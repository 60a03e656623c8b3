// Runs: optimizers by their definitions, records, reasons to stop, resuming from a state, many runs at once.
#include "attsvm/train.h"

#include <cmath>
#include <numbers>

#include "support.h"
#include "train/gradient.h"

namespace attsvm {
namespace {

using test::expect_refusal;

AttentionTask random_task(std::uint32_t seed, HeadKind head = HeadKind::linear) {
  return generate({.n = 5, .T = 6, .d = 4, .dz = 3, .head = head}, seed).task;
}

TrainedRun run(const AttentionTask& task, const TrainSettings& settings, const Start& start = {}) {
  Threads threads(1);
  return train(task, settings, threads, start);
}

/// ∂L/∂W at W as an ordinary matrix.
RowMatrix gradient_at(const AttentionTask& task, const RowMatrix& W, double* loss = nullptr) {
  Threads threads(1);
  LossGradient at;
  GradientPass(task, {}, threads).evaluate(W, task.head(), {}, at);
  if (loss != nullptr) *loss = at.loss;
  return at.W.direction * std::exp(at.W.log_scale);
}

void expect_near(const RowMatrix& a, const RowMatrix& b, double tolerance) {
  ASSERT_EQ(a.rows(), b.rows());
  ASSERT_EQ(a.cols(), b.cols());
  EXPECT_LE((a - b).norm(), tolerance * (1 + b.norm()));
}

TEST(Train, StepsAreThoseOfTheDefinitions) {
  const AttentionTask task = random_task(1);
  const RowMatrix W = RowMatrix::Random(4, 3);
  double loss = 0;
  const RowMatrix g = gradient_at(task, W, &loss);
  const auto after_one = [&](TrainSettings settings) {
    settings.steps = 1;
    return run(task, settings, {.W = W}).W;
  };
  expect_near(after_one({.optimizer = Optimizer::gd, .step = 0.3}), W - 0.3 * g, 1e-15);
  expect_near(after_one({.step = 0.3}), W - 0.3 * g / g.norm(), 1e-15);
  expect_near(after_one({.step = 0.3, .epsilon = 0.7}), W - 0.3 * g / (g.norm() + 0.7), 1e-15);
  expect_near(after_one({.step = 0.3, .weight_decay = 0.5}), W - 0.3 * g / g.norm() - 0.15 * W, 1e-15);
  double best = 0;
  const OptimalTokens optimal = optimal_tokens(task);
  const auto values = head_values(task);
  for (Index i = 0; i < task.queries(); ++i) {
    const double score = values[static_cast<std::size_t>(task.offset(task.sequence(i)) + optimal.selection.first(i))];
    best += std::log1p(std::exp(-task.label(i) * score)) / static_cast<double>(task.queries());
  }
  expect_near(after_one({.optimizer = Optimizer::polyak, .step = 0.5}), W - 0.5 * (loss - best) / g.squaredNorm() * g,
              1e-12);
  for (const double P : {1.5, 2.0, 3.0}) {
    for (const bool normalize : {false, true}) {
      RowMatrix expected = W;
      for (Index k = 0; k < W.size(); ++k) {
        const double x = W.data()[k], step = 0.2 * g.data()[k] / (normalize ? g.norm() : 1);
        const double mirrored = std::copysign(std::pow(std::abs(x), P - 1), x) - step;
        expected.data()[k] = std::copysign(std::pow(std::abs(mirrored), 1 / (P - 1)), mirrored);
      }
      expect_near(after_one({.optimizer = Optimizer::mirror, .power = P, .normalize = normalize, .step = 0.2}),
                  expected, 1e-14);
    }
  }
}

TEST(Train, AdamGoesOnFromItsMomentsWhereTheGradientUnderflows) {
  const AttentionTask task = random_task(2);
  TrainSettings settings{.optimizer = Optimizer::ngd, .step = 1e5, .steps = 20, .arithmetic = Arithmetic::plain};
  const TrainedRun rests = run(task, settings);
  ASSERT_EQ(rests.stop, TrainStop::zero_gradient);
  EXPECT_LT(rests.steps, 20);
  settings.optimizer = Optimizer::adam;
  const TrainedRun goes_on = run(task, settings);
  EXPECT_EQ(goes_on.stop, TrainStop::finished);
  EXPECT_EQ(goes_on.steps, 20);
}

TEST(Train, ARunAtRestCanBeStopped) {
  const AttentionTask task = random_task(2);
  TrainSettings settings{.step = 1e5, .steps = 1000, .arithmetic = Arithmetic::plain, .record = {.every = 1}};
  ASSERT_EQ(run(task, settings).stop, TrainStop::zero_gradient);
  int asked = 0;
  settings.progress = [&](const TrainProgress&) { return ++asked == 100; };
  const TrainedRun stopped = run(task, settings);
  EXPECT_EQ(stopped.stop, TrainStop::asked);
  EXPECT_LT(stopped.records.size(), 200U);
}

TEST(Train, AdamAndSchedules) {
  const AttentionTask task = random_task(2);
  RowMatrix W = RowMatrix::Zero(4, 3), m = W, s = W;
  for (int k = 0; k < 5; ++k) {
    const RowMatrix g = gradient_at(task, W);
    m = 0.9 * m + 0.1 * g;
    s = 0.999 * s + 0.001 * g.cwiseProduct(g);
    const RowMatrix first = m / (1 - std::pow(0.9, k + 1)), second = s / (1 - std::pow(0.999, k + 1));
    W -= (0.1 * first.array() / (second.array().sqrt() + 1e-8)).matrix();
  }
  expect_near(run(task, {.optimizer = Optimizer::adam, .steps = 5}).W, W, 1e-13);

  for (const Schedule schedule : {Schedule::sqrt, Schedule::cosine}) {
    RowMatrix V = RowMatrix::Zero(4, 3);
    for (int k = 0; k < 4; ++k) {
      const double size =
          schedule == Schedule::sqrt ? 0.1 / std::sqrt(1.0 + k) : 0.05 * (1 + std::cos(std::numbers::pi * k / 4));
      const RowMatrix g = gradient_at(task, V);
      V -= size * g / g.norm();
    }
    expect_near(run(task, {.steps = 4, .schedule = schedule}).W, V, 1e-13);
  }
}

TEST(Train, FactorsFollowTheChainRule) {
  const AttentionTask task = random_task(3);
  RowMatrix K = RowMatrix::Random(4, 2), Q = RowMatrix::Random(3, 2);
  const Start start{.K = K, .Q = Q};
  for (int k = 0; k < 3; ++k) {
    const RowMatrix G = gradient_at(task, K * Q.transpose());
    const RowMatrix gK = G * Q + 0.02 * K, gQ = G.transpose() * K + 0.02 * Q;
    K -= 0.1 * gK / gK.norm();
    Q -= 0.1 * gQ / gQ.norm();
  }
  const TrainedRun trained = run(task, {.param = Parametrization::KQ, .steps = 3, .ridge = 0.01}, start);
  expect_near(trained.K, K, 1e-13);
  expect_near(trained.Q, Q, 1e-13);
  expect_near(trained.W, K * Q.transpose(), 1e-13);
  EXPECT_EQ(run(task, {.param = Parametrization::KQ, .width = 7, .steps = 1}).K.cols(), 7);
  EXPECT_EQ(run(task, {.param = Parametrization::KQ, .steps = 1}).K.cols(), 3);
}

TEST(Train, RandomStartsAreUniform) {
  const AttentionTask task = generate({.n = 2, .T = 3, .d = 64, .dz = 16}, 1).task;
  const TrainedRun first = run(task, {.param = Parametrization::KQ, .steps = 0, .seed = 1});
  EXPECT_LE(first.K.cwiseAbs().maxCoeff(), 1 / 8.0);
  EXPECT_GE(first.K.cwiseAbs().maxCoeff(), 0.95 / 8.0);
  EXPECT_LE(first.Q.cwiseAbs().maxCoeff(), 1 / 4.0);
  EXPECT_NEAR(first.K.squaredNorm() / static_cast<double>(first.K.size()), 1 / 192.0, 3e-4);
  EXPECT_NE(run(task, {.param = Parametrization::KQ, .steps = 0, .seed = 2}).K, first.K);
  EXPECT_EQ(run(task, {.steps = 0}).W.norm(), 0);
  EXPECT_LE(run(task, {.steps = 0, .init = Init::random}).W.cwiseAbs().maxCoeff(), 1 / 8.0);
}

TEST(Train, RecordsWhatIsDue) {
  const AttentionTask task = random_task(4);
  const auto steps_of = [](const TrainedRun& trained) {
    std::vector<Index> steps;
    for (const Record& record : trained.records) steps.push_back(record.step);
    return steps;
  };
  EXPECT_EQ(steps_of(run(task, {.steps = 7})), (std::vector<Index>{0, 7}));
  EXPECT_EQ(steps_of(run(task, {.steps = 0})), (std::vector<Index>{0}));
  EXPECT_EQ(steps_of(run(task, {.steps = 7, .record = {.every = 3}})), (std::vector<Index>{0, 3, 6}));
  const TrainedRun trained = run(task, {.steps = 7, .record = {.at = {1, 2, 5}}});
  EXPECT_EQ(steps_of(trained), (std::vector<Index>{1, 2, 5}));
  for (const Record& record : trained.records) {
    const TrainedRun part = run(task, {.steps = record.step});
    EXPECT_EQ(part.W, record.W);
    EXPECT_EQ(part.loss, record.loss);
    EXPECT_EQ(part.norm, record.norm);
    EXPECT_EQ(part.log_gradient, record.log_gradient);
  }
}

TEST(Train, SpreadRecordsGrowByAboutEqualRatios) {
  for (const Index steps : {Index{0}, Index{1}, Index{98}, Index{99}, Index{100}, Index{2000}, Index{1} << 40}) {
    const RecordPlan plan = RecordPlan::spread(steps);
    ASSERT_EQ(static_cast<Index>(plan.at.size()), std::min<Index>(steps + 1, 100));
    EXPECT_EQ(plan.at.front(), 0);
    EXPECT_EQ(plan.at.back(), steps);
    double least = 1e300, most = 0;
    for (std::size_t k = 1; k < plan.at.size(); ++k) {
      ASSERT_GT(plan.at[k], plan.at[k - 1]);
      if (plan.at[k - 1] < 100) continue;
      const double ratio = static_cast<double>(plan.at[k]) / static_cast<double>(plan.at[k - 1]);
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
    EXPECT_LE(most, least + .02) << steps;
  }
  EXPECT_EQ(RecordPlan::spread(1000, 2).at, (std::vector<Index>{0, 1000}));
}

TEST(Train, ZeroGradientStopsAndRepeats) {
  const AttentionTask equal({.tokens = Array::own(std::vector<double>{1.0, 2, 1, 5}, {1, 2, 2}),
                             .keys = Array::own(std::vector<double>{1.0, 0, 0, 1}, {1, 2, 2}),
                             .head = Array::own(std::vector<double>{1.0, 0}, {2})});
  for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
    const TrainedRun trained = run(equal, {.steps = 9, .arithmetic = arithmetic, .record = {.every = 3}});
    EXPECT_EQ(trained.stop, TrainStop::zero_gradient);
    EXPECT_EQ(trained.steps, 0);
    ASSERT_EQ(trained.records.size(), 4U);
    EXPECT_EQ(trained.records[3].step, 9);
    EXPECT_EQ(trained.records[3].W, trained.records[0].W);
  }
  EXPECT_EQ(run(random_task(1), {.param = Parametrization::KQ, .init = Init::zero}).stop, TrainStop::zero_gradient);
  EXPECT_EQ(run(equal, {.steps = 3, .weight_decay = 0.1}).stop, TrainStop::finished) << "weights still decay";
}

TEST(Train, OverflowKeepsTheLastPoint) {
  for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
    for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
      for (const double step : {1e308, 1e200, 1e160}) {
        const TrainedRun trained =
            run(random_task(5), {.param = param, .step = step, .steps = 400, .arithmetic = arithmetic});
        if (trained.stop == TrainStop::overflow) {
          EXPECT_LT(trained.steps, 400);
        } else {
          EXPECT_NE(trained.stop, TrainStop::asked);
        }
        EXPECT_TRUE(trained.W.allFinite());
        EXPECT_TRUE(std::isfinite(trained.norm));
        EXPECT_TRUE(std::isfinite(trained.loss));
      }
    }
  }
  EXPECT_EQ(run(random_task(5), {.step = 1e308}).stop, TrainStop::overflow);
  EXPECT_EQ(run(random_task(5), {.param = Parametrization::KQ, .step = 1e160}).stop, TrainStop::overflow);
}

TEST(Train, StopsWhenTheDirectionRests) {
  const AttentionTask task = random_task(6);
  const TrainedRun trained = run(task, {.steps = 1 << 20, .record = {.at = {0, 1 << 20}}, .stop_direction = 1e-2});
  EXPECT_EQ(trained.stop, TrainStop::direction);
  EXPECT_LT(trained.steps, 1 << 20);
  EXPECT_EQ(trained.records.back().W, trained.W);
  const TrainedRun further = run(task, {.steps = 8 * trained.steps});
  EXPECT_LE((further.W / further.norm - trained.W / trained.norm).norm(), 2e-2) << "it had arrived";
}

TEST(Train, AStateIsTakenUpToTheSameBits) {
  Threads threads(1);
  for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::adam, Optimizer::mirror, Optimizer::lion,
                                    Optimizer::muon, Optimizer::signum, Optimizer::steepest}) {
    for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
      TrainSettings settings{.param = param,
                             .joint = true,
                             .optimizer = optimizer,
                             .norm = Norm::entrywise(3),
                             .steps = 40,
                             .dropout = 0.1,
                             .batch = 2,
                             .record = {.every = 5},
                             .stop_direction = 1e-9};
      const AttentionTask task = random_task(7);
      const TrainedRun whole = train(task, settings, threads);
      std::vector<double> state;
      TrainSettings first = settings;
      first.progress = [](const TrainProgress& progress) { return progress.step == 17; };
      Trainer begun(task, first, threads);
      std::vector<Record> records;
      const auto keep = [&](const Record& record) { records.push_back(record); };
      ASSERT_EQ(begun.run(keep), TrainStop::asked);
      state = begun.state();
      Trainer second(task, settings, threads);
      second.restore(state);
      ASSERT_EQ(second.run(keep), TrainStop::finished);
      EXPECT_EQ(second.result().W, whole.W);
      EXPECT_EQ(second.result().head.v, whole.head.v);
      ASSERT_EQ(records.size(), whole.records.size());
      for (std::size_t k = 0; k < records.size(); ++k) {
        EXPECT_EQ(records[k].step, whole.records[k].step);
        EXPECT_EQ(records[k].W, whole.records[k].W);
        EXPECT_EQ(records[k].loss, whole.records[k].loss);
      }
      state.pop_back();
      expect_refusal([&] { second.restore(state); }, {"state"});
    }
  }
}

TEST(Train, AStateInLanesIsTakenUpToTheSameBits) {
  Threads threads(1);
  for (const Optimizer optimizer :
       {Optimizer::ngd, Optimizer::adamw, Optimizer::lion, Optimizer::muon, Optimizer::signum}) {
    for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
      // Large steps, so that gradients become e^{-1000} and averages change their exponents.
      TrainSettings settings{.param = param, .optimizer = optimizer, .step = 5, .steps = 150, .init = Init::random};
      const AttentionTask task = random_task(7);
      const TrainedRun whole = train(task, settings, threads);
      for (const Index middle : {1, 17, 64, 100}) {
        TrainSettings part = settings;
        part.progress = [&](const TrainProgress& progress) { return progress.step == middle; };
        Trainer begun(task, part, threads), second(task, settings, threads);
        ASSERT_EQ(begun.run([](const Record&) {}), TrainStop::asked);
        second.restore(begun.state());
        ASSERT_EQ(second.run([](const Record&) {}), whole.stop);
        EXPECT_EQ(second.result().W, whole.W) << name_of(optimizer) << " " << middle;
        EXPECT_EQ(second.result().log_gradient, whole.log_gradient);
      }
    }
  }
}

TEST(Train, StopsWhenAsked) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < 11; ++k) tasks.push_back(random_task(k));
  tasks.push_back(random_task(11, HeadKind::quadratic));  // lanes cannot take it
  Threads threads(2);
  const auto after_seven = [](const TrainProgress& now) { return now.step == 7; };
  const auto runs = train_many(tasks, {.steps = 1000, .progress = after_seven}, threads);
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    EXPECT_EQ(runs[k].stop, TrainStop::asked);
    EXPECT_EQ(runs[k].steps, 7);
    const TrainedRun alone = run(tasks[k], {.steps = 1000, .progress = after_seven});
    EXPECT_EQ(alone.stop, TrainStop::asked);
    EXPECT_EQ(runs[k].W, alone.W);
    EXPECT_EQ(runs[k].W, run(tasks[k], {.steps = 7}).W);
  }
}

TEST(Train, ManyRunsAtRestCanBeStopped) {
  const std::vector<AttentionTask> tasks{random_task(1), random_task(2)};
  Threads threads(1);
  TrainSettings settings{.param = Parametrization::KQ, .steps = 100, .init = Init::zero, .record = {.every = 10}};
  for (const TrainedRun& whole : train_many(tasks, settings, threads)) {
    EXPECT_EQ(whole.stop, TrainStop::zero_gradient);
    EXPECT_EQ(whole.records.size(), 11U);
  }
  settings.progress = [](const TrainProgress& now) { return now.step == 25; };
  for (const TrainedRun& part : train_many(tasks, settings, threads)) {
    EXPECT_EQ(part.stop, TrainStop::asked) << "its records are not all there";
    EXPECT_EQ(part.records.size(), 3U);
  }
}

TEST(Train, MinibatchesTakeEveryQueryOnceAnEpoch) {
  const AttentionTask task = random_task(8);
  const TrainedRun whole = run(task, {.optimizer = Optimizer::gd, .step = 1e-6, .steps = 1});
  const TrainedRun parts = run(task, {.optimizer = Optimizer::gd, .step = 1e-6, .steps = 5, .batch = 1});
  EXPECT_LE((parts.W / 5 - whole.W).norm(), 1e-5 * whole.W.norm()) << "five single queries make one pass";
  EXPECT_NE(run(task, {.steps = 3, .batch = 2, .seed = 1}).W, run(task, {.steps = 3, .batch = 2, .seed = 2}).W);
}

TEST(Train, RefusesWhatMakesNoSense) {
  const AttentionTask task = random_task(1), hidden = random_task(1, HeadKind::hidden);
  const AttentionTask headless({.tokens = Array::own(std::vector<double>{1.0, 2, 1, 5}, {1, 2, 2})});
  const auto refused = [&](const TrainSettings& settings, const std::vector<std::string>& words,
                           const Start& start = {}) { expect_refusal([&] { run(task, settings, start); }, words); };
  refused({.step = 0}, {"step = 0"});
  refused({.steps = -1}, {"steps = -1"});
  refused({.epsilon = -1}, {"epsilon = -1"});
  refused({.ridge = std::nan("")}, {"ridge"});
  refused({.dropout = 1}, {"dropout = 1"});
  refused({.param = Parametrization::p}, {"param = p", "3"});
  refused({.width = 2}, {"width"});
  refused({.normalize = true}, {"normalize"});
  refused({.optimizer = Optimizer::mirror, .power = 1}, {"power = 1"});
  refused({.joint = true, .optimizer = Optimizer::polyak}, {"polyak", "head"});
  refused({.momentum = 1}, {"momentum = 1"});
  refused({.momentum = -.1}, {"momentum = -0.1"});
  refused({.optimizer = Optimizer::adam, .momentum = .9}, {"momentum", "adam", "betas"});
  refused({.optimizer = Optimizer::mirror, .momentum = .9}, {"momentum", "mirror", "muon"});
  refused({.betas = {{.9, .9}}}, {"betas", "ngd", "adam, adamw and lion"});
  refused({.optimizer = Optimizer::lion, .betas = {{1, .9}}}, {"first beta = 1"});
  refused({.optimizer = Optimizer::adam, .betas = {{.9, std::nan("")}}}, {"second beta = nan"});
  refused({.newton_schulz = 5}, {"newton-schulz", "muon"});
  refused({.optimizer = Optimizer::muon, .newton_schulz = -1}, {"newton-schulz = -1"});
  refused({.steps = 5, .record = {.at = {6}}}, {"record", "6"});
  refused({}, {"W0", "(2,2)", "(4,3)"}, {.W = RowMatrix::Zero(2, 2)});
  refused({.param = Parametrization::KQ}, {"K0", "Q0"}, {.K = RowMatrix::Zero(4, 2)});
  refused({}, {"v0", "(3)", "(4)"}, {.v = Eigen::VectorXd::Zero(3)});
  expect_refusal([&] { run(hidden, {.optimizer = Optimizer::polyak}); }, {"polyak", "relu"});
  expect_refusal([&] { run(headless, {}); }, {"head"});
  EXPECT_EQ(run(headless, {.steps = 1}, {.v = Eigen::VectorXd::Ones(2)}).steps, 1);
}

}  // namespace
}  // namespace attsvm
