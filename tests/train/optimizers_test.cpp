// Every optimizer step by step against its definition in 66 digits, where gradients are ordinary numbers and where they
// are e^{-4000}.
#include <Eigen/SVD>
#include <cmath>
#include <limits>

#include "support.h"
#include "train/average.h"
#include "train/lane_kernels.h"
#include "train/lane_steps.h"
#include "train/optimizer_oracle.h"
#include "train/settings.h"

namespace attsvm {
namespace {

using test::Digits;
using test::DigitsMatrix;
using test::OptimizerOracle;
using test::SteepestOracle;

/// A task that runs in vector lanes, or one that does not: two of its tokens are equal.
AttentionTask small_task(std::uint32_t seed, bool in_lanes = true) {
  const AttentionTask task = generate({.n = 5, .T = 6, .d = 4, .dz = 3}, seed).task;
  if (in_lanes) return task;
  TaskArrays arrays = task.arrays();
  std::vector<double> tokens(f64_span(arrays.tokens).begin(), f64_span(arrays.tokens).end());
  std::copy_n(tokens.begin(), 4, tokens.begin() + 4);
  arrays.tokens = Array::own(tokens, arrays.tokens.shape);
  return AttentionTask(arrays);
}

/// The optimizers as the command line names them, with options that are not as usual.
std::vector<TrainSettings> every_optimizer() {
  std::vector<TrainSettings> list;
  for (const char* text : {"gd", "ngd", "adam", "adamw", "signum", "lion", "muon", "steepest:fro", "steepest:nuc",
                           "steepest:spec", "steepest:max", "steepest:l1", "steepest:lp:3", "steepest:lp:1.5",
                           "steepest:schatten:3", "steepest:schatten:1.5"}) {
    TrainSettings settings;
    EXPECT_EQ(set_optimizer(text, settings), "") << text;
    list.push_back(settings);
    const OptimizerFacts& facts = facts_of(settings.optimizer);
    if (facts.momentum) {
      settings.momentum = .6;
      list.push_back(settings);
    }
    if (facts.betas) {
      settings.betas = {{.5, .8}};
      settings.epsilon = 0;
      list.push_back(settings);
    }
  }
  return list;
}

/// Runs 50 steps and compares each with the one that the definition takes from the same point.
void expect_steps_of_the_definition(const AttentionTask& task, TrainSettings settings, const Start& start,
                                    double* smallest) {
  Threads threads(1);
  const bool factors = settings.param == Parametrization::KQ;
  std::vector<OptimizerOracle> oracles(factors ? 2 : 1, OptimizerOracle(settings));
  constexpr Index kSteps = 50;
  const double decay = completed(settings).weight_decay.value();
  std::vector<RowMatrix> before;
  int compared = 0;
  for (Index step = 0; step <= kSteps; ++step) {
    TrainSettings part = settings;
    part.steps = step;
    const TrainedRun run = train(task, part, threads, start);
    if (smallest != nullptr) *smallest = std::min(*smallest, run.log_gradient);
    ASSERT_EQ(run.stop, TrainStop::finished);
    const std::vector<RowMatrix> now = factors ? std::vector<RowMatrix>{run.K, run.Q} : std::vector<RowMatrix>{run.W};
    if (step > 0) {
      std::vector<DigitsMatrix> gradients;
      const DigitsMatrix first(before[0]);
      if (factors) {
        const DigitsMatrix second(before[1]), G = test::gradient_oracle(task, first * second.transposed());
        gradients = {G * second, G.transposed() * first};
      } else {
        gradients = {test::gradient_oracle(task, first)};
      }
      for (std::size_t a = 0; a < now.size(); ++a) {
        const SteepestOracle move = oracles[a].move(gradients[a]);
        if (!move.clear) continue;
        const RowMatrix expected = before[a] - settings.step * (move.direction.rounded() + decay * before[a]);
        const double size = settings.step * std::max(1.0, move.direction.rounded().norm());
        const double allowed = size * (2e-10 + 2e-14 * move.condition) + 1e-15 * before[a].norm();
        EXPECT_LE((now[a] - expected).norm(), allowed) << "step " << step << " array " << a;
        ++compared;
      }
    }
    before = now;
  }
  EXPECT_GE(compared, kSteps / 2);
}

std::string name_of_case(const TrainSettings& settings) { return words_of(settings); }

class Optimizers : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(InLanesAndAlone, Optimizers, testing::Bool());

TEST_P(Optimizers, TakeTheStepsOfTheirDefinitions) {
  const AttentionTask task = small_task(3, GetParam());
  for (TrainSettings settings : every_optimizer()) {
    SCOPED_TRACE(name_of_case(settings));
    settings.init = Init::random;
    settings.step = 0.3;
    expect_steps_of_the_definition(task, settings, {}, nullptr);
    settings.param = Parametrization::KQ;
    expect_steps_of_the_definition(task, settings, {}, nullptr);
  }
}

TEST_P(Optimizers, TakeThemWhereGradientsAreTooSmallForDoubles) {
  const AttentionTask task = small_task(4, GetParam());
  Threads threads(1);
  const TrainedRun far = train(task, {.step = 10, .steps = 400}, threads);
  const RowMatrix W = far.W * (3e4 / far.norm);
  const Start start{.W = W, .K = W, .Q = RowMatrix::Identity(3, 3)};
  for (TrainSettings settings : every_optimizer()) {
    if (settings.optimizer == Optimizer::gd) continue;  // does not move
    if (settings.optimizer == Optimizer::adam || settings.optimizer == Optimizer::adamw) settings.epsilon = 0;
    SCOPED_TRACE(name_of_case(settings));
    double smallest = 0;
    settings.weight_decay = 0;
    settings.step = 20;  // scales change by many orders of magnitude from step to step
    expect_steps_of_the_definition(task, settings, start, &smallest);
    EXPECT_LT(smallest, -2000);
    settings.param = Parametrization::KQ;
    settings.step = .01;
    expect_steps_of_the_definition(task, settings, start, &smallest);
  }
}

TEST(OptimizerSteps, SpectralStepsOfFewQueriesStayInTheirSpan) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 2, .T = 5, .d = 6, .dz = 4}, 8).task;
  const Start start{.W = RowMatrix::Random(6, 4), .K = RowMatrix::Random(6, 3), .Q = RowMatrix::Random(4, 3)};
  for (const double momentum : {0.0, .7}) {
    for (const double decay : {0.0, .01}) {
      TrainSettings settings{.optimizer = Optimizer::muon, .momentum = momentum, .step = .2, .weight_decay = decay};
      expect_steps_of_the_definition(task, settings, start, nullptr);
      settings.param = Parametrization::KQ;
      expect_steps_of_the_definition(task, settings, start, nullptr);
    }
  }
}

/// Gradients whose scales jump between e^{-9000} and 1, and whose entries span the range of doubles.
ScaledMatrix jumping_gradient(Index step) {
  const auto wave = [](double x) {
    return std::sin(12.9898 * x) * 43758.5453 - std::floor(std::sin(12.9898 * x) * 43758.5453);
  };
  ScaledMatrix g{RowMatrix(2, 3), 0};
  const auto k = static_cast<double>(step);
  // Climbs by a third of a block per step, twice, falls back and jumps about in between.
  const Index phase = step % 100;
  g.log_scale = phase < 60 ? -9000 + 130 * static_cast<double>(phase) + 1500 * static_cast<double>(step / 100)
                           : -9000 * wave(k + .5);
  for (Index j = 0; j < 6; ++j) {
    const double size = wave(100 * k + static_cast<double>(j)) - .5;
    g.direction.data()[j] = j == 4 && step % 3 != 2 ? 0 : j == 5 ? size * 1e-300 : j == 3 ? size * 1e60 : size;
    if (j == 2) g.direction.data()[j] = step == 40 ? 1e-308 : 0;
  }
  if (step % 37 == 35) g = {RowMatrix::Zero(2, 3), -std::numeric_limits<double>::infinity()};
  return g;
}

DigitsMatrix wide(const ScaledMatrix& g) {
  return DigitsMatrix(g.direction).map([&](const Digits& x) { return x.is_zero() ? x : x * exp(Digits(g.log_scale)); });
}

TEST(OptimizerState, AveragesKeepEveryEntryAtItsOwnScale) {
  Average average(2, 3, Arithmetic::exact);
  DigitsMatrix m(2, 3);
  bool far_apart = false;
  for (Index step = 0; step < 300; ++step) {
    const ScaledMatrix g = jumping_gradient(step);
    const DigitsMatrix exact = wide(g);
    const auto mix = [&](double b) {
      return m.with(
          exact, [&](const Digits& past, const Digits& x) { return Digits(b) * past + (Digits(1) - Digits(b)) * x; });
    };
    const DigitsMatrix used = mix(.7);
    m = mix(.9);
    ScaledMatrix mixed;
    average.add(g, .7, .9, mixed);
    Digits top(0);
    for (const Digits& x : used.numbers) top = abs(x) > top ? abs(x) : top;
    for (Index j = 0; j < 6; ++j) {
      const double entry = mixed.direction.data()[j];
      const Digits& expected = used.numbers[static_cast<std::size_t>(j)];
      EXPECT_EQ(entry > 0, expected > Digits(0)) << step << " " << j;
      EXPECT_EQ(entry == 0, expected.is_zero()) << step << " " << j;
      if (top.is_zero()) continue;
      const double share = (expected / top).to_double();
      far_apart = far_apart || (share == 0 && !expected.is_zero());
      const double found = (Digits(entry) * exp(Digits(mixed.log_scale)) / top).to_double();
      EXPECT_NEAR(found, share, 1e-11 * std::abs(share) + 1e-230) << step << " " << j;
    }
  }
  EXPECT_TRUE(far_apart);
}

TEST(OptimizerState, AdamKeepsEveryEntryAtItsOwnScale) {
  for (const double epsilon : {0.0, 1e-8}) {
    AdamMoments moments(2, 3, Arithmetic::exact);
    OptimizerOracle oracle({.optimizer = Optimizer::adam, .epsilon = epsilon});
    for (Index step = 0; step < 300; ++step) {
      const ScaledMatrix g = jumping_gradient(step);
      RowMatrix found;
      moments.add(g, {.9, .999}, epsilon, step, found);
      const RowMatrix expected = oracle.move(wide(g)).direction.rounded();
      for (Index j = 0; j < 6; ++j)
        EXPECT_NEAR(found.data()[j], expected.data()[j], 1e-10 * std::abs(expected.data()[j])) << step << " " << j;
    }
  }
}

/// One step at a random W, divided by its size.
RowMatrix one_step(TrainSettings settings, const AttentionTask& task, const RowMatrix& W) {
  Threads threads(1);
  settings.steps = 1;
  settings.step = .125;
  return (W - train(task, settings, threads, {.W = W}).W) / settings.step;
}

/// Runs of one array each, in lanes, whose gradients are jumping_gradient with different beginnings.
struct LanesAlone {
  LanesAlone(Index width, const TrainSettings& settings) : lanes(width), rule(rule_of(settings)) {
    for (std::vector<double>* one : {&theta, &descent, &mean, &square, &block, &mixed, &mixed_block, &peak, &top})
      one->resize(static_cast<std::size_t>(6 * lanes + 8));
    array = {.rows = 2, .cols = 3, .theta = aligned(theta), .descent = aligned(descent)};
    array.mean = aligned(mean);
    array.square = aligned(square);
    array.block = aligned(block);
    array.mixed = aligned(mixed);
    array.mixed_block = aligned(mixed_block);
    array.peak = aligned(peak);
  }
  static double* aligned(std::vector<double>& numbers) {
    double* at = numbers.data();
    while (reinterpret_cast<std::uintptr_t>(at) % 64 != 0) ++at;
    return at;
  }
  /// What the step subtracts in every lane, (lanes,6).
  RowMatrix step(Index number) {
    for (Index lane = 0; lane < lanes; ++lane) {
      const ScaledMatrix g = jumping_gradient(number + 7 * lane);
      aligned(top)[lane] = std::max(g.log_scale, -1e300);
      for (Index j = 0; j < 6; ++j) {
        aligned(descent)[j * lanes + lane] = -g.direction.data()[j];
        array.theta[j * lanes + lane] = 0;
      }
    }
    if (number % 50 == 49) part_uniform(lanes, array);
    lane_step({rule, 1, number, aligned(top), 1}, lanes, array);
    RowMatrix moved(lanes, 6);
    for (Index j = 0; j < 6; ++j) {
      for (Index lane = 0; lane < lanes; ++lane) moved(lane, j) = -array.theta[j * lanes + lane];
    }
    return moved;
  }

  Index lanes;
  StepRule rule;
  LaneArray array{};
  std::vector<double> theta{}, descent{}, mean{}, square{}, block{}, mixed{}, mixed_block{}, peak{}, top{};
};

TEST(OptimizerState, LanesKeepEveryEntryAtItsOwnScale) {
  for (const TrainSettings& settings :
       {TrainSettings{.optimizer = Optimizer::adam}, TrainSettings{.optimizer = Optimizer::adam, .epsilon = 0},
        TrainSettings{.optimizer = Optimizer::signum}, TrainSettings{.optimizer = Optimizer::lion},
        TrainSettings{.optimizer = Optimizer::ngd, .momentum = .6}}) {
    SCOPED_TRACE(words_of(settings));
    const Index width = lane_width();
    const double negligible = settings.optimizer == Optimizer::ngd ? 1e-150 : 1e-290;  // beside the whole vector
    LanesAlone many(width, settings);
    std::vector<OptimizerOracle> oracles(static_cast<std::size_t>(width), OptimizerOracle(settings));
    for (Index number = 0; number < 250; ++number) {
      const RowMatrix moved = many.step(number);
      for (Index lane = 0; lane < width; ++lane) {
        const RowMatrix expected =
            oracles[static_cast<std::size_t>(lane)].move(wide(jumping_gradient(number + 7 * lane))).direction.rounded();
        for (Index j = 0; j < 6; ++j) {
          const double x = expected.data()[j];
          ASSERT_NEAR(moved(lane, j), x, 1e-10 * std::abs(x) + negligible) << number << " " << lane << " " << j;
        }
      }
    }
  }
}

TEST(OptimizerSteps, EpsilonIsAddedToTheDualNorm) {
  const AttentionTask task = small_task(6);
  const RowMatrix W = RowMatrix::Random(4, 3);
  const RowMatrix g = one_step({.optimizer = Optimizer::gd}, task, W);
  for (const char* norm : {"fro", "nuc", "spec", "max", "l1", "lp:3", "schatten:3"}) {
    TrainSettings settings{.optimizer = Optimizer::steepest, .norm = Norm::parse(norm)};
    const RowMatrix D = one_step(settings, task, W);
    const double dual = settings.norm.dual_of(g);
    EXPECT_NEAR(settings.norm.of(D), 1, 1e-12) << norm;
    EXPECT_NEAR(D.cwiseProduct(g).sum(), dual, 1e-12 * dual) << norm;
    settings.epsilon = .3;
    EXPECT_LE((one_step(settings, task, W) - D * (dual / (dual + .3))).norm(), 1e-12) << norm;
  }
}

TEST(OptimizerSteps, NewtonSchulzIsThePolynomialOfMuon) {
  const AttentionTask task = small_task(7);
  const RowMatrix W = RowMatrix::Random(4, 3);
  const RowMatrix g = one_step({.optimizer = Optimizer::gd}, task, W);
  const RowMatrix found = one_step({.optimizer = Optimizer::muon, .newton_schulz = 3}, task, W);
  Eigen::JacobiSVD<Eigen::MatrixXd> svd(g / g.norm(), Eigen::ComputeThinU | Eigen::ComputeThinV);
  Eigen::VectorXd sigma = svd.singularValues();
  for (int k = 0; k < 3; ++k) {
    for (double& s : sigma) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
  }
  EXPECT_LE((found - svd.matrixU() * sigma.asDiagonal() * svd.matrixV().transpose()).norm(), 1e-11);
}

TEST(OptimizerSteps, AreThoseOfPlainArithmeticInOrdinaryRanges) {
  const AttentionTask task = small_task(5);
  Threads threads(1);
  for (TrainSettings settings : every_optimizer()) {
    SCOPED_TRACE(name_of_case(settings));
    settings.steps = 20;
    settings.init = Init::random;
    const RowMatrix exact = train(task, settings, threads).W;
    settings.arithmetic = Arithmetic::plain;
    EXPECT_LE((train(task, settings, threads).W - exact).norm(), 1e-9 * exact.norm());
  }
}

}  // namespace
}  // namespace attsvm
