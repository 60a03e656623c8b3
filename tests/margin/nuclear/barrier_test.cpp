#include "margin/nuclear/barrier.h"

#include "base/spectrum.h"
#include "margin_support.h"

namespace attsvm {
namespace {

struct Setting {
  AttentionTask task;
  MarginProblem problem;
  MarginSolution frobenius, nuclear;
  NuclearRows rows;
  Buffer<double> lambda;

  explicit Setting(std::uint32_t draw)
      : task(generate({.n = 8, .T = 6, .d = 7}, 5, draw).task),
        problem(MarginProblem::attention(task, optimal_tokens(task).selection)) {
    Threads alone(1);
    frobenius = solve(problem, {}, alone);
    nuclear = solve(problem, {.norm = Norm::nuclear()}, alone);
    EXPECT_TRUE(verify(task, stored(problem, frobenius, 1e-8)).valid);
    EXPECT_TRUE(verify(task, stored(problem, nuclear, 1e-8)).valid);
    rows.load(problem, frobenius.W.stableNorm());
    lambda.grow(rows.count());
    rows.duals_in(frobenius.dual, lambda.data());
  }
  double best() const { return nuclear.objective / rows.weight_scale(); }
};

TEST(NuclearBarrier, EnclosesTheOptimumAllAlongThePath) {
  for (std::uint32_t draw = 0; draw < 20; ++draw) {
    Setting setting(draw);
    NuclearBarrier barrier;
    ASSERT_TRUE(barrier.start(setting.rows, setting.lambda.data()));
    Eigen::MatrixXd W, A;
    Buffer<double> value;
    value.grow(setting.rows.count());
    double last = 2 * barrier.gap();
    for (int step = 0; step < 16; ++step) {
      ASSERT_TRUE(barrier.step());
      EXPECT_LE(barrier.gap(), last * (1 + 1e-6));
      last = barrier.gap();
      EXPECT_LT(barrier.bound(), setting.best());
      setting.rows.weigh(barrier.lambda(), A);
      EXPECT_LT(singular_values(A)(0), 1);
      for (Index k = 0; k < setting.rows.count(); ++k) EXPECT_GE(barrier.lambda()[k], 0);

      barrier.weights(W);
      setting.rows.values(W, value.data());
      double least = 1;  // smallest value/rhs of all rows
      for (Index k = 0; k < setting.rows.count(); ++k) {
        EXPECT_NEAR(value[k] - setting.rows.rhs(k), barrier.slack()[k], 1e-9);
        least = std::min(least, value[k] / setting.rows.rhs(k));
      }
      if (barrier.central()) {
        EXPECT_GE(singular_values(W).sum() / least, setting.best() * (1 - 1e-9));
      }
    }
    EXPECT_LT(last, 1e-2) << "draw " << draw;
    EXPECT_NEAR(barrier.bound(), setting.best(), 2 * last * setting.best()) << "draw " << draw;
  }
}

TEST(NuclearBarrier, RefusesToStartWithoutMultipliers) {
  Setting setting(0);
  setting.lambda.fill(setting.rows.count(), 0.0);
  EXPECT_FALSE(NuclearBarrier().start(setting.rows, setting.lambda.data()));
}

TEST(NuclearBarrier, AnyUnitOfLength) {
  const AttentionTask task =
      generate({.law = Law::separable, .n = 6, .T = 6, .d = 8, .pattern = QueryPattern::self}, 3).task;
  const auto optimum = [&](const AttentionTask& of) {
    const MarginProblem problem = MarginProblem::attention(of, *task.select());
    MarginSolution solution = test::proven(problem, {.norm = Norm::nuclear()});
    EXPECT_EQ(solution.status, MarginStatus::optimal);
    return solution;
  };
  const MarginSolution unit = optimum(task);
  for (const double s : {1e60, 1e-60, 1e-100}) {
    const MarginSolution solution = optimum(test::with_tokens(task, [&](double x) { return s * x; }));
    EXPECT_NEAR(solution.objective * s * s, unit.objective, 1e-9 * unit.objective) << s;
    EXPECT_EQ(solution.K.cols(), unit.K.cols()) << s;
  }
}

TEST(NuclearBarrier, IsWhatSmallSolvesTake) {
  for (std::uint32_t draw = 0; draw < 20; ++draw) {
    if (draw == 5) continue;  // the path stalls there, and the interior point method takes over
    EXPECT_EQ(Setting(draw).nuclear.method, "barrier path, Newton on the face") << draw;
  }
}

}  // namespace
}  // namespace attsvm
