// Where weight decay and dropout hold a run, against what is known in closed form.
#include "theory/settling.h"

#include <cmath>

#include "attsvm/theory.h"
#include "support.h"
#include "theory/instances.h"
#include "train/gradient.h"

namespace attsvm::internal {
namespace {

Eigen::VectorXd scores_of(std::initializer_list<double> numbers) {
  Eigen::VectorXd scores(static_cast<Index>(numbers.size()));
  std::copy(numbers.begin(), numbers.end(), scores.data());
  return scores;
}

/// Two tokens: the expected loss of attention s on the first one, written out.
double two_tokens(double a, double b, double s, double q) {
  const auto loss = [](double u) { return std::log1p(std::exp(-u)); };
  const double x = a * s / (1 - q), y = b * (1 - s) / (1 - q);
  return (1 - q) * (1 - q) * loss(x + y) + q * (1 - q) * (loss(x) + loss(y)) + q * q * loss(0);
}

TEST(DropoutLimit, IsTheLeastOfAGrid) {
  for (const double q : {0.1, 0.3, 0.5}) {
    for (const auto& [a, b] : {std::pair{3.0, 2.0}, {1.0, 0.9}, {5.0, 0.2}, {2.0, -1.0}}) {
      double best = 1, least = two_tokens(a, b, 1, q);
      for (int k = 0; k < 10'000; ++k) {
        const double s = k / 10'000.0, loss = two_tokens(a, b, s, q);
        if (loss < least) best = s, least = loss;
      }
      const DropoutLimit limit = dropout_limit(scores_of({a, b}), q);
      EXPECT_NEAR(limit.attention[0], best, 2e-4) << a << " " << b << " " << q;
      EXPECT_LE(limit.loss, least + 1e-10);
      EXPECT_NEAR(limit.even_loss, two_tokens(a, b, 0.5, q), 1e-14);
      EXPECT_EQ(limit.saturates, best == 1);
    }
  }
}

/// A token joins the selected one, of score g, where its score t has t ((1−q) a + q/2) > g a, a = |ℓ′(g/(1−q))|.
TEST(DropoutLimit, SaturatesUpToTheScoreThatIsKnown) {
  const double q = 0.3, g = 2, a = 1 / (1 + std::exp(g / (1 - q))), edge = g * a / ((1 - q) * a + q / 2);
  EXPECT_TRUE(dropout_limit(scores_of({g, edge - 1e-6, -1}), q).saturates);
  EXPECT_FALSE(dropout_limit(scores_of({g, edge + 1e-6, -1}), q).saturates);
}

TEST(Decay, SettlesWhereTheGradientBalancesIt) {
  Threads threads(1);
  const AttentionTask task = draw_task({.n = 3, .T = 4, .d = 5}, 3, 0);
  for (const double decay : {0.1, 0.01}) {
    const DecayedRun run = run_with_decay(task, Optimizer::gd, kDecayStep, decay, 0, threads);
    LossGradient at;
    GradientPass(task, {}, threads).evaluate(run.W, task.head(), {}, at);
    EXPECT_LE((at.W.direction * std::exp(at.W.log_scale) + decay * run.W).norm(), 1e-12 * decay * run.norm);
    EXPECT_LE(run.to_path, 1e-8);
    const DecayedRun normalized = run_with_decay(task, Optimizer::ngd, 0.1, 10 * decay, 0, threads);
    EXPECT_NEAR(normalized.norm, 0.1 / decay, 1e-9 / decay);
  }
}

TEST(Decay, FallingStepsOnSingleQueriesSettleThereToo) {
  Threads threads(1);
  const AttentionTask task = draw_task({.n = 3, .T = 4, .d = 5}, 3, 0);
  const DecayedRun all = run_with_decay(task, Optimizer::gd, kDecayStep, 0.01, 0, threads);
  const DecayedRun one = run_batches_with_decay(task, 0.01, 0, 0, threads);
  EXPECT_NE(one.W, all.W);
  EXPECT_LE((one.W - all.W).norm(), 1e-2 * all.norm);
  EXPECT_LE(one.to_path, 1e-5);
}

/// With two tokens a query has one row, and each step moves W by the unit matrix of that row.
TEST(Batches, SingleQueriesOfTwoTokensAddUnitMatrices) {
  Threads threads(1);
  TaskArrays arrays = draw_task({.n = 4, .T = 2, .d = 6}, 5, 0).arrays();
  RowMatrix queries = ConstRows(f64_span(arrays.queries).data(), 4, 6);
  for (Index i = 0; i < 4; ++i) queries.row(i) *= 1 + 0.5 * static_cast<double>(i);  // their lengths do not matter
  arrays.queries = Array::own(queries);
  const AttentionTask task(arrays);
  const MarginProblem problem = MarginProblem::attention(task, optimal_tokens(task).selection);
  RowMatrix expected = RowMatrix::Zero(6, 6);
  for (const MarginGroup& group : problem.groups()) {
    Eigen::VectorXd delta(6);
    problem.delta(group, group.first_row, delta.data());
    expected += delta.normalized() * ConstVector(group.z, 6).normalized().transpose();
  }
  const RowMatrix limit = single_query_limit(problem, threads);
  ASSERT_FALSE(limit.isZero(0));
  EXPECT_LE(1 - correlation(limit, expected), 1e-13);
  const MarginSolution svm = solve(problem, {}, threads);
  require_verified(problem, svm);
  EXPECT_GT(1 - correlation(svm.W, expected), 1e-3) << "the case does not tell the two apart";
  const TrainedRun run = train(task, {.steps = 4'000, .batch = 1, .seed = 1}, threads);
  ASSERT_EQ(attention_map(task, run.W, threads).selected, optimal_tokens(task).selection.firsts());
  EXPECT_LE(1 - correlation(run.W, expected), 1e-5);
}

/// Two tokens of scores 0.9 and −0.5: a low aim is met between them, a high one saturates the first token.
TEST(Smoothing, OutputsComeToTheAimOrAsNearAsTokensAllow) {
  Threads threads(1);
  const AttentionTask task({.tokens = Array::own(std::vector<double>{0.9, -0.5}, {1, 2, 1}),
                            .keys = Array::own(std::vector<double>{1, 0, 0, 1}, {1, 2, 2}),
                            .head = Array::own(std::vector<double>{1}, {1})});
  EXPECT_NEAR(smoothed_aim(0.9), std::log(1.1 / 0.9), 1e-15);
  const SmoothedRun low = run_with_smoothing(task, 0.9, threads), high = run_with_smoothing(task, 0.3, threads);
  EXPECT_NEAR(low.output[0], std::log(1.1 / 0.9), 1e-9);
  EXPECT_EQ(high.limit[0], 0.9);
  EXPECT_NEAR(high.output[0], 0.9, kSmoothedClose);
  EXPECT_FALSE(low.stuck[0] || high.stuck[0]);
  EXPECT_LE(std::max(low.off, high.off), kSmoothedClose);
}

TEST(Decay, NoNormIsImpliedWhereWStaysBounded) {
  EXPECT_TRUE(implied_norm({}));
  EXPECT_FALSE(implied_norm({.weight_decay = 0.1}));
  EXPECT_FALSE(implied_norm({.dropout = 0.1}));
  EXPECT_FALSE(implied_norm({.label_smoothing = 0.1}));
}

}  // namespace
}  // namespace attsvm::internal
