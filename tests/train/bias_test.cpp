// Fixed numbers b in the logits: gradients against MPFR, and against keys that have b as a coordinate of its own.
#include <cmath>
#include <limits>

#include "attsvm/theory.h"
#include "attsvm/train.h"
#include "base/random.h"
#include "support.h"
#include "train/gradient.h"
#include "train_oracle.h"

namespace attsvm {
namespace {

using test::expect_refusal;
using test::Real;

RowMatrix uniform(Index rows, Index cols, double scale, std::uint32_t seed) {
  RowMatrix matrix(rows, cols);
  const Random random(seed, 0, 79);
  for (Index k = 0; k < matrix.size(); ++k)
    matrix.data()[k] = scale * (2 * random.uniform(static_cast<std::uint64_t>(k)) - 1);
  return matrix;
}

AttentionTask with_bias(const AttentionTask& task, const RowMatrix& bias) {
  TaskArrays arrays = task.arrays();
  arrays.bias = Array::own(bias);
  return AttentionTask(std::move(arrays));
}

AttentionTask drawn(QueryPattern pattern, HeadKind head, double scale, std::uint32_t seed) {
  const AttentionTask task =
      generate({.n = 3, .T = 4, .d = 3, .shortest = 2, .pattern = pattern, .head = head, .hidden = 4, .lambda = 0.3},
               seed)
          .task;
  return with_bias(task, uniform(task.queries(), task.longest(), scale, seed));
}

/// A prompt task with b as one more coordinate of its keys: with 1 there in the prompt, its logits are those of `task`.
AttentionTask with_keys_of_bias(const AttentionTask& task) {
  RowMatrix keys = RowMatrix::Zero(task.tokens(), task.key_size() + 1);
  for (Index i = 0; i < task.queries(); ++i) {
    for (Index t = 0; t < task.visible(i); ++t) keys.row(task.offset(i) + t) << task.keys(i).row(t), task.bias(i)[t];
  }
  TaskArrays arrays = task.arrays();
  arrays.bias = {};
  arrays.keys = Array::own(keys);
  return AttentionTask(std::move(arrays));
}

LossGradient pass(const AttentionTask& task, const RowMatrix& W, const Head& head, const PassSettings& settings,
                  const PassChoice& choice = {}, int threads = 1) {
  Threads some(threads);
  LossGradient out;
  GradientPass(task, settings, some).evaluate(W, head, choice, out);
  return out;
}

RowMatrix value_of(const ScaledMatrix& scaled) { return scaled.direction * std::exp(scaled.log_scale); }

/// Direction and size of ∂L/∂W against 20,000 bits.
void expect_exact(const AttentionTask& task, const RowMatrix& W, double entropy, double most_digits) {
  const Eigen::VectorXd& v = task.head().v;
  const auto oracle = test::oracle_gradient<Real>(task, Loss::logistic, W, v, 0, entropy);
  Real square(0);
  for (Index k = 0; k < W.size(); ++k) {
    const Real& entry = oracle[static_cast<std::size_t>(k)];
    square = square + entry * entry;
  }
  ASSERT_FALSE(square.is_zero());
  const Real norm = sqrt(square);
  const double log_norm = log(norm).to_double();
  EXPECT_LE(log_norm / std::log(10.0), most_digits) << "the case is not saturated";
  for (const bool trained : {false, true}) {
    const LossGradient got = pass(task, W, task.head(), {.head_gradient = trained}, {.entropy = entropy});
    EXPECT_NEAR(got.W.log_norm(), log_norm, 1e-11 * (1 + std::abs(log_norm)));
    for (Index k = 0; k < W.size(); ++k) {
      EXPECT_NEAR(got.W.direction.data()[k] / got.W.direction.norm(),
                  (oracle[static_cast<std::size_t>(k)] / norm).to_double(), 1e-10);
    }
  }
}

TEST(Bias, GradientsAreThoseOfTheAutodiffOracle) {
  std::uint32_t seed = 0;
  for (const QueryPattern pattern :
       {QueryPattern::prompt, QueryPattern::cross, QueryPattern::self, QueryPattern::causal}) {
    for (const HeadKind head : {HeadKind::linear, HeadKind::hidden, HeadKind::quadratic}) {
      const AttentionTask task = drawn(pattern, head, 2, ++seed);
      const Eigen::VectorXd& v = task.head().v;
      const RowMatrix W = uniform(task.key_size(), task.query_size(), 2, seed);
      const auto expected = test::oracle_gradient<double>(task, Loss::logistic, W, v);
      const ConstRows G(expected.data(), W.rows(), W.cols());
      for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
        for (const bool trained : {false, true}) {
          const LossGradient got = pass(task, W, task.head(), {.arithmetic = arithmetic, .head_gradient = trained});
          EXPECT_LE((value_of(got.W) - G).norm(), 1e-13 * (1 + G.norm())) << seed;
        }
      }
    }
  }
}

TEST(Bias, SaturatedGradientsAreThoseOf6000Digits) {
  for (const QueryPattern pattern : {QueryPattern::cross, QueryPattern::causal}) {
    for (const HeadKind head : {HeadKind::linear, HeadKind::hidden, HeadKind::quadratic}) {
      const AttentionTask even = drawn(pattern, head, 500, 21), steep = drawn(pattern, head, 20'000, 21);
      expect_exact(even, uniform(3, 3, 2000, 4), 0, -20);
      expect_exact(steep, uniform(3, 3, 2, 4), 0, -500);  // b alone saturates
    }
  }
  expect_exact(drawn(QueryPattern::cross, HeadKind::linear, 500, 21), uniform(3, 3, 2000, 4), 0.1, -20);
}

/// Tokens 0 and 1 have one key. b sets them apart, so that token 1, far below the peak, outweighs token 2 by more
/// still; its own key adds nothing to the gradient and must not hide what token 2 adds.
TEST(Bias, TwinsThatItSetsApartStaySilent) {
  const AttentionTask task(TaskArrays{.tokens = Array::own(std::vector<double>{1, 0, 0.5, 0.6, -1, 0.3}, {1, 3, 2}),
                                      .keys = Array::own(std::vector<double>{1, 0, 1, 0, 0.2, 0.5}, {1, 3, 2}),
                                      .bias = Array::own(std::vector<double>{0, -40, -900}, {1, 3}),
                                      .head = Array::own(std::vector<double>{1, 0.5}, {2})});
  expect_exact(task, (RowMatrix(2, 1) << 30, 7).finished(), 0, -300);
}

/// Every way of a step to take attention from logits, at every temperature.
TEST(Bias, IsAKeyThatIsNotTrained) {
  const AttentionTask task = drawn(QueryPattern::prompt, HeadKind::linear, 3, 5), keys = with_keys_of_bias(task);
  std::vector<PassChoice> choices(6);
  choices[1].dropout = 0.4;
  choices[2].selector = Selector::gumbel;
  choices[3] = {.selector = Selector::dirichlet, .concentration = 10};
  choices[4].entropy = 0.7;
  const std::vector<Index> some{2, 0};
  choices[5].queries = some;
  for (PassChoice& choice : choices) {
    for (const double temperature : {1.0, 0.25, 3.0}) {
      for (const double scale : {1.0, 40.0}) {
        choice.temperature = temperature;
        choice.seed = 8;
        const RowMatrix w = uniform(3, 1, scale, 6) / temperature;
        const RowMatrix more = (RowMatrix(4, 1) << w, 1 / temperature).finished();
        for (const bool excess : {false, true}) {
          const LossGradient here = pass(task, w, task.head(), {.excess = excess}, choice),
                             there = pass(keys, more, task.head(), {.excess = excess}, choice);
          EXPECT_NEAR(here.loss, there.loss, 1e-13);
          const RowMatrix G = value_of(here.W), other = value_of(there.W).topRows(3);
          EXPECT_GT(G.norm(), 0);
          EXPECT_LE((G - other).norm(), 1e-11 * G.norm()) << temperature << " " << scale;
          if (excess) {
            EXPECT_NEAR(here.log_excess, there.log_excess, 1e-11 * (1 + std::abs(there.log_excess)));
          }
        }
      }
    }
  }
}

TEST(Bias, IsDividedByTheTemperatureInSteps) {
  const AttentionTask task = drawn(QueryPattern::prompt, HeadKind::linear, 3, 5), keys = with_keys_of_bias(task);
  Threads threads(1);
  const RowMatrix w = uniform(3, 1, 2, 6), more = (RowMatrix(4, 1) << w, 1).finished();
  const TrainSettings settings{.optimizer = Optimizer::gd, .step = 0.5, .steps = 1, .temperature = {2, 2}};
  const RowMatrix expected = w - 0.25 * value_of(pass(keys, more / 2, task.head(), {}).W).topRows(3);
  const TrainedRun run = train(task, settings, threads, {.W = w});
  EXPECT_LE((run.W - expected).norm(), 1e-14);
  EXPECT_NEAR(run.records[0].loss, pass(keys, more, task.head(), {}).loss, 1e-14);
}

TEST(Bias, IsSharedByAllHeads) {
  const AttentionTask task = drawn(QueryPattern::cross, HeadKind::linear, 3, 7);
  const RowMatrix W = uniform(6, 3, 2, 8);
  const Eigen::VectorXd v = uniform(6, 1, 1, 9).col(0);
  const auto expected = test::oracle_gradient<double>(task, Loss::logistic, W, v);
  for (const bool trained : {false, true}) {
    const LossGradient got = pass(task, W, {.kind = HeadKind::linear, .v = v}, {.head_gradient = trained, .heads = 2});
    EXPECT_LE((value_of(got.W) - ConstRows(expected.data(), 6, 3)).norm(), 1e-13);
  }
}

TEST(Bias, IsAllOfAttentionAtZero) {
  Threads threads(1);
  const AttentionTask task = drawn(QueryPattern::causal, HeadKind::linear, 3, 11);
  const RowMatrix zero = RowMatrix::Zero(3, 3);
  const AttentionMap map = attention_map(task, zero, threads);
  double entropy = 0;
  for (Index i = 0; i < task.queries(); ++i) {
    double sum = 0;
    for (Index t = 0; t < task.visible(i); ++t) sum += std::exp(task.bias(i)[t]);
    for (Index t = 0; t < task.longest(); ++t) {
      if (t >= task.visible(i)) {
        EXPECT_EQ(map.log_weights(i, t), -std::numeric_limits<double>::infinity());
        continue;
      }
      const double s = std::exp(task.bias(i)[t]) / sum;
      EXPECT_NEAR(map.log_weights(i, t), std::log(s), 1e-14);
      entropy -= s * std::log(s) / static_cast<double>(task.queries());
    }
  }
  EXPECT_NEAR(mean_entropy(task, zero, threads), entropy, 1e-14);
  // A regularization path begins there, too.
  const RegularizationPath path = regularization_path(task, {.radii = {1e-9}, .starts = 1}, threads);
  EXPECT_NEAR(path.points[0].log_loss, pass(task, zero, task.head(), {}).log_loss, 1e-7);
}

/// Entries of tokens that queries do not see, also in gaps, change nothing.
TEST(Bias, IsReadWhereTokensAreSeen) {
  Threads threads(1);
  const RowMatrix bias = uniform(1, 4, 2, 12);
  const std::vector<double> tokens{1, 0, 0.5, 0.6, 0.2, 0.5, -1, 0.3}, seen{1, 0, 0.2, 0.5, -1, 0.3};
  TaskArrays arrays{.tokens = Array::own(tokens, {1, 4, 2}),
                    .visible = Array::own(std::vector<bool>{true, false, true, true}, {1, 4}),
                    .bias = Array::own(bias),
                    .head = Array::own(std::vector<double>{1, 0.5}, {2})};
  const AttentionTask masked(arrays);
  RowMatrix other = bias;
  other(0, 1) = 1e300;
  arrays.bias = Array::own(other);
  const AttentionTask same(arrays);
  const AttentionTask removed(
      TaskArrays{.tokens = Array::own(seen, {1, 3, 2}),
                 .bias = Array::own(std::vector<double>{bias(0, 0), bias(0, 2), bias(0, 3)}, {1, 3}),
                 .head = Array::own(std::vector<double>{1, 0.5}, {2})});
  const TrainSettings settings{.steps = 50};
  const RowMatrix W = train(removed, settings, threads).W;
  EXPECT_EQ(train(masked, settings, threads).W, W);
  EXPECT_EQ(train(same, settings, threads).W, W);
}

TEST(Bias, RunsHaveTheSameBitsForAnyThreadsAndInBatches) {
  const AttentionTask plain = generate({.n = 800, .T = 8, .d = 8}, 3).task;  // several chunks
  const AttentionTask task = with_bias(plain, uniform(800, 8, 3, 13)),
                      small = drawn(QueryPattern::self, HeadKind::linear, 3, 14);
  Threads one(1), three(3);
  const TrainSettings settings{.steps = 12};
  const RowMatrix W = train(task, settings, one).W;
  EXPECT_EQ(train(task, settings, three).W, W);
  EXPECT_NE(train(plain, settings, one).W, W);
  const std::vector<AttentionTask> many(9, small);
  for (const TrainedRun& run : train_many(many, settings, three)) EXPECT_EQ(run.W, train(small, settings, one).W);
}

/// The finite part explains what of the observed attention W makes, not what the bias makes.
TEST(Bias, IsNoPartOfTheFinitePart) {
  Threads threads(1);
  const AttentionTask task = drawn(QueryPattern::causal, HeadKind::none, 3, 15);
  const RowMatrix W = uniform(3, 3, 1, 16);
  std::vector<std::vector<Index>> all;
  for (Index i = 0; i < task.queries(); ++i) all.emplace_back(task.seen(i).begin(), task.seen(i).end());
  const MarginProblem problem =
      MarginProblem::finite_part(task, Selection::sets(all), attention_map(task, W, threads).log_weights);
  const Eigen::VectorXd values = problem.values(W);
  ASSERT_GT(problem.rows(), 0);
  for (Index k = 0; k < problem.rows(); ++k) EXPECT_NEAR(values(k), problem.rhs(k), 1e-12);
}

TEST(Bias, RefusesWhatHasNoMeaning) {
  TaskArrays arrays = generate({.n = 2, .T = 3, .d = 2}, 1).task.arrays();
  const auto refused = [&](Array bias, const std::string& words) {
    arrays.bias = std::move(bias);
    expect_refusal([&] { AttentionTask{arrays}; }, {words});
  };
  refused(Array::own(RowMatrix(RowMatrix::Zero(2, 2))), "bias has shape (2,2); must be (2,3)");
  RowMatrix bias = RowMatrix::Zero(2, 3);
  bias(1, 2) = std::numeric_limits<double>::quiet_NaN();
  refused(Array::own(bias), "bias[1,2] = nan");
  bias(1, 2) = -std::numeric_limits<double>::infinity();
  refused(Array::own(bias), "bias[1,2] = -inf");
}

}  // namespace
}  // namespace attsvm
