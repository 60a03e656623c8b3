// Many heads of attention: gradients against the autodiff oracle and MPFR, steps, and the numbers that runs start from.
#include "train/many_heads.h"

#include <cmath>

#include "attsvm/train.h"
#include "base/random.h"
#include "support.h"
#include "train/parameters.h"
#include "train_oracle.h"

namespace attsvm {
namespace {

using Real = test::BasicReal<4096>;

constexpr Index kHeads = 3;

RowMatrix drawn_matrix(Index rows, Index cols, std::uint32_t seed, double scale = 1) {
  const Random random(seed, 0, 78);
  RowMatrix matrix(rows, cols);
  for (Index k = 0; k < matrix.size(); ++k)
    matrix.data()[k] = scale * (2 * random.uniform(static_cast<std::uint64_t>(k)) - 1);
  return matrix;
}

AttentionTask drawn_task(QueryPattern pattern, std::uint32_t seed) {
  return generate({.n = 3, .T = 4, .d = 3, .shortest = 2, .pattern = pattern}, seed).task;
}

Eigen::VectorXd drawn_values(const AttentionTask& task, std::uint32_t seed) {
  return drawn_matrix(kHeads * task.value_size(), 1, seed).col(0);
}

RowMatrix value_of(const ScaledMatrix& scaled) { return scaled.direction * std::exp(scaled.log_scale); }

LossGradient pass(const AttentionTask& task, const RowMatrix& W, const Eigen::VectorXd& v, PassSettings settings) {
  Threads threads(2);
  settings.heads = kHeads;
  settings.head_gradient = true;
  LossGradient out;
  GradientPass(task, settings, threads).evaluate(W, {.kind = HeadKind::linear, .v = v}, {}, out);
  settings.head_gradient = false;  // another path through each query
  LossGradient fast;
  GradientPass(task, settings, threads).evaluate(W, {.kind = HeadKind::linear, .v = v}, {}, fast);
  for (std::size_t h = 0; h < kHeads; ++h) {
    EXPECT_NEAR(fast.heads[h].log_norm(), out.heads[h].log_norm(), 1e-9 * (1 + std::abs(out.heads[h].log_norm())));
  }
  return out;
}

TEST(ManyHeads, GradientsAreThoseOfTheAutodiffOracle) {
  std::uint32_t seed = 0;
  for (const QueryPattern pattern :
       {QueryPattern::prompt, QueryPattern::cross, QueryPattern::self, QueryPattern::causal}) {
    for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
      for (const double smoothing : {0.0, 0.25}) {
        if (smoothing > 0 && loss != Loss::logistic) continue;
        const AttentionTask task = drawn_task(pattern, ++seed);
        const Index d = task.key_size(), dz = task.query_size();
        const RowMatrix W = drawn_matrix(kHeads * d, dz, 5, 3);
        const Eigen::VectorXd v = drawn_values(task, 6);
        const auto expected = test::oracle_gradient<double>(task, loss, W, v, smoothing);
        const double value = test::plain_loss(task, loss, std::vector<double>(W.data(), W.data() + W.size()),
                                              std::vector<double>(v.begin(), v.end()), smoothing);
        for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
          const LossGradient got =
              pass(task, W, v, {.loss = loss, .label_smoothing = smoothing, .arithmetic = arithmetic});
          const ConstRows G(expected.data(), W.rows(), dz);
          EXPECT_LE((value_of(got.W) - G).norm(), 1e-13 * (1 + G.norm()));
          for (Index h = 0; h < kHeads; ++h) {
            const RowMatrix own = value_of(got.heads[static_cast<std::size_t>(h)]);
            EXPECT_LE((own - G.middleRows(h * d, d)).norm(), 1e-13 * (1 + G.norm()));
          }
          EXPECT_LE((value_of(got.v) - ConstVector(expected.data() + W.size(), v.size())).norm(), 1e-13);
          EXPECT_NEAR(got.loss, value, 1e-14 * (1 + std::abs(value)));
        }
      }
    }
  }
}

/// Heads that saturate to different degrees: each keeps its own direction and size, where all but the largest are 0 in
/// doubles, and the outputs of all of them enter the common factor.
TEST(ManyHeads, GradientsOfSaturatedHeadsAreThoseOf1200Digits) {
  for (const Loss loss : {Loss::logistic, Loss::exponential}) {
    const AttentionTask task = drawn_task(QueryPattern::cross, 3);
    RowMatrix W = drawn_matrix(kHeads * 3, 3, 9);
    W.middleRows(0, 3) *= 5;
    W.middleRows(3, 3) *= 1000;
    W.middleRows(6, 3) *= 120'000;
    const Eigen::VectorXd v = 40 * drawn_values(task, 8);  // the derivative of the loss is small as well
    const auto oracle = test::oracle_gradient<Real>(task, loss, W, v);
    const LossGradient got = pass(task, W, v, {.loss = loss});
    for (std::size_t h = 0; h < kHeads; ++h) {
      Real square(0);
      for (std::size_t k = 0; k < 9; ++k) square = square + oracle[9 * h + k] * oracle[9 * h + k];
      ASSERT_FALSE(square.is_zero());
      const Real norm = sqrt(square);
      const double log_norm = log(norm).to_double();
      const ScaledMatrix& own = got.heads[h];
      EXPECT_NEAR(own.log_norm(), log_norm, 1e-11 * (1 + std::abs(log_norm)));
      for (std::size_t k = 0; k < 9; ++k) {
        EXPECT_NEAR(own.direction.data()[k] / own.direction.norm(), (oracle[9 * h + k] / norm).to_double(), 1e-11);
      }
    }
    EXPECT_LT(got.heads[2].log_norm(), -800) << "the case is not saturated";
  }
}

TEST(ManyHeads, ChainRuleIsThatOfFiniteDifferences) {
  const AttentionTask task = drawn_task(QueryPattern::cross, 4);
  const Eigen::VectorXd v = drawn_values(task, 6);
  constexpr double kRidge = 0.01, kMove = 1e-6;
  for (const bool shared : {false, true}) {
    const TrainSettings settings{
        .param = Parametrization::KQ, .joint = true, .heads = kHeads, .shared_norm = shared, .width = 2, .seed = 5};
    Parameters point = starting_point(task, settings, {}, {.kind = HeadKind::linear, .v = v});
    EXPECT_EQ(point.arrays.size(), shared ? 3U : 2 * kHeads + 1U);
    const auto objective = [&](Parameters& at) {
      at.form_product();
      return pass(task, at.W(), at.v().col(0), {}).loss + kRidge * (at.all(0).squaredNorm() + at.all(1).squaredNorm());
    };
    ChainRule chain;
    const LossGradient at = pass(task, point.W(), v, {});
    const auto gradients = chain.apply(point, at, kRidge, Arithmetic::exact);
    ASSERT_EQ(gradients.size(), point.arrays.size());
    for (std::size_t a = 0; a < point.arrays.size(); ++a) {
      const RowMatrix exact = value_of(*gradients[a]);
      ASSERT_EQ(exact.size(), point.arrays[a].size());
      for (Index k = 0; k < exact.size(); ++k) {
        Parameters up = point, down = point;
        up.arrays[a].data()[k] += kMove;
        down.arrays[a].data()[k] -= kMove;
        EXPECT_NEAR(exact.data()[k], (objective(up) - objective(down)) / (2 * kMove), 2e-9) << a << " " << k;
      }
    }
  }
}

TEST(ManyHeads, StepsDivideByOneNormPerHeadOrByOneNormOverAll) {
  const AttentionTask task = drawn_task(QueryPattern::cross, 4);
  Threads threads(1);
  for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
    for (const bool shared : {false, true}) {
      const TrainSettings settings{.param = param, .heads = kHeads, .shared_norm = shared, .step = 0.25, .steps = 1};
      const TrainedRun run = train(task, settings, threads);
      const TrainedRun before = train(task, {.param = param, .heads = kHeads, .steps = 0}, threads);
      const bool factors = param == Parametrization::KQ;
      const RowMatrix moved = factors ? run.K - before.K : run.W - before.W;
      if (shared) {
        EXPECT_NEAR(moved.norm(), 0.25, 1e-14);
        EXPECT_GT(std::abs(moved.middleRows(0, 3).norm() - moved.middleRows(3, 3).norm()), 1e-3);
      } else {
        for (Index h = 0; h < kHeads; ++h) EXPECT_NEAR(moved.middleRows(3 * h, 3).norm(), 0.25, 1e-14);
      }
      ASSERT_EQ(run.W.rows(), kHeads * 3);
      for (Index h = 0; factors && h < kHeads; ++h) {
        const RowMatrix product = run.K.middleRows(3 * h, 3) * run.Q.middleRows(3 * h, 3).transpose();
        EXPECT_LE((run.W.middleRows(3 * h, 3) - product).norm(), 1e-14);
      }
    }
  }
}

/// The v's are the rows of the task's head, then drawn; a start replaces them all.
TEST(ManyHeads, ValuesAreGivenThenDrawn) {
  const AttentionTask task = drawn_task(QueryPattern::cross, 4);
  const Eigen::VectorXd v = starting_values(task, {.heads = kHeads, .seed = 1});
  EXPECT_EQ(v.head(3), task.head().v);
  EXPECT_NEAR(v.segment(3, 3).norm(), 1, 1e-15);
  EXPECT_NE(v.segment(3, 3), v.segment(6, 3));
  EXPECT_NE(v.tail(3), starting_values(task, {.heads = kHeads, .seed = 2}).tail(3));
  // More heads leave the v's of the first ones as they are.
  EXPECT_EQ(v, starting_values(task, {.heads = kHeads + 1, .seed = 1}).head(v.size()));
  TaskArrays arrays = task.arrays();
  arrays.head = Array::own(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3});
  const AttentionTask two(arrays);
  EXPECT_EQ(starting_values(two, {.heads = 2}), (Eigen::VectorXd(6) << 1, 2, 3, 4, 5, 6).finished());
  Threads threads(1);
  EXPECT_EQ(train(two, {.heads = 2, .steps = 1}, threads, {.v = v.head(6)}).head.v, v.head(6));
  test::expect_refusal([&] { train(two, {.steps = 1}, threads); }, {"head has 2 rows, one per head; heads = 1"});
  test::expect_refusal([&] { train(two, {.heads = 2, .steps = 1}, threads, {.v = v}); },
                       {"v0 has 9 numbers; must have 3 per head"});
  test::expect_refusal([&] { optimal_tokens(two); }, {"head has one v per head of attention"});
}

TEST(ManyHeads, SettingsThatHaveNoMeaningAreRefused) {
  const AttentionTask task = drawn_task(QueryPattern::cross, 4);
  Threads threads(1);
  test::expect_refusal([&] { train(task, {.heads = 0}, threads); }, {"heads = 0; must be a whole number from 1 up"});
  test::expect_refusal([&] { train(task, {.shared_norm = true}, threads); },
                       {"shared-norm has no meaning with one head"});
  test::expect_refusal([&] { train(task, {.heads = 2, .optimizer = Optimizer::polyak}, threads); }, {"polyak"});
  test::expect_refusal([&] { train(task, {.heads = 2, .shared_norm = true, .optimizer = Optimizer::muon}, threads); },
                       {"singular values belong to one head"});
  const AttentionTask hidden =
      generate({.n = 3, .T = 4, .d = 3, .pattern = QueryPattern::cross, .head = HeadKind::hidden}, 1).task;
  test::expect_refusal([&] { train(hidden, {.heads = 2}, threads); }, {"many heads are linear; this head is relu"});
}

/// Heads with the same v and the same start stay equal, unless dropout takes other weights from each.
TEST(ManyHeads, DropoutTakesOtherWeightsFromEachHead) {
  const AttentionTask task = drawn_task(QueryPattern::cross, 4);
  Threads threads(1);
  const Start start{.v = task.head().v.replicate(2, 1)};
  const auto apart = [&](double dropout) {
    const RowMatrix W = train(task, {.heads = 2, .steps = 3, .dropout = dropout}, threads, start).W;
    return (W.topRows(3) - W.bottomRows(3)).norm();
  };
  EXPECT_EQ(apart(0), 0);
  EXPECT_GT(apart(0.5), 0.01);
}

/// A run that is restored from its state goes on with the same bits, and threads do not change them.
TEST(ManyHeads, RunsGoOnFromTheirState) {
  const AttentionTask task = drawn_task(QueryPattern::causal, 4);
  TrainSettings settings{.joint = true, .heads = kHeads, .shared_norm = true, .steps = 20, .dropout = 0.25, .batch = 2};
  settings.momentum = 0.5;
  Threads one(1), three(3);
  const TrainedRun whole = train(task, settings, one);
  TrainSettings stopping = settings;
  stopping.progress = [](const TrainProgress& now) { return now.step == 7; };
  Trainer first(task, stopping, three), second(task, settings, three);
  EXPECT_EQ(first.run([](const Record&) {}), TrainStop::asked);
  second.restore(first.state());
  EXPECT_EQ(second.run([](const Record&) {}), TrainStop::finished);
  EXPECT_EQ(second.result().W, whole.W);
  EXPECT_EQ(second.result().head.v, whole.head.v);
}

}  // namespace
}  // namespace attsvm
