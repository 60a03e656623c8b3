// The SVM of the weights in joint training on tasks solved by hand, and a task whose two inputs pull in different
// directions.
#include "theory/joint_svm.h"

#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "attsvm/train.h"
#include "attsvm/verify.h"
#include "support.h"

namespace attsvm {
namespace {

/// Prompt attention; input i has the token difference (first, second) between its selected token 0 and token 1, which
/// is zero. Token 0 scores 1, token 1 scores 0.
AttentionTask two_differences(std::array<double, 2> first, std::array<double, 2> second) {
  return AttentionTask(
      {.tokens = Array::own(std::vector<double>{1, 0, 1, 0}, {2, 2, 1}),
       .keys = Array::own(std::vector<double>{first[0], first[1], 0, 0, second[0], second[1], 0, 0}, {2, 2, 2}),
       .head = Array::own(std::vector<double>{1}, {1})});
}

const Selection& zeros() {
  static const Selection selection = Selection::single(std::vector<Index>{0, 0});
  return selection;
}

JointSvm solve_joint(const AttentionTask& task, std::vector<double> beyond) {
  Threads threads(1);
  MarginSolver solver(threads);
  JointSvm found =
      solve_joint_svm(task, zeros(), beyond, [&](const MarginProblem& problem) { return solver.solve(problem, {}); });
  const MarginProblem problem = MarginProblem::attention(found.task, zeros(), found.relaxed);
  EXPECT_TRUE(verify(found.task, stored(problem, found.weights, 1e-8)).valid);
  return found;
}

TEST(JointSvm, LevelsWhatTheHeadGivesWithWhatAttentionGives) {
  // max over unit p of min(p_1, p_2 + c): p_1 = p_2 + c, so p_1 = (c + sqrt(2 - c^2))/2.
  for (const double c : {1e-9, 0.1, 0.5, 0.9, 0.999}) {
    const JointSvm found = solve_joint(two_differences({1, 0}, {0, 1}), {0, c});
    ASSERT_EQ(found.weights.status, MarginStatus::optimal);
    const double p1 = (c + std::sqrt(2 - c * c)) / 2, norm = found.weights.W.norm();
    EXPECT_NEAR(found.weights.W(0, 0) / norm, p1, 1e-12);
    EXPECT_NEAR(found.weights.W(1, 0) / norm, p1 - c, 1e-12);
    EXPECT_NEAR(1 / norm, p1, 1e-12) << "the margin that the right-hand sides are made from is the answer's own";
    EXPECT_EQ(found.rhs[0], 1);
    EXPECT_NEAR(found.rhs[1], 1 - c / p1, 1e-12);
    EXPECT_TRUE(found.relaxed.empty());
  }
}

TEST(JointSvm, IsTheRelaxedOneWhereThatSuffices) {
  for (const double c : {1.0, 2.0, 100.0}) {
    const JointSvm found = solve_joint(two_differences({1, 0}, {0, 1}), {0, c});
    EXPECT_EQ(found.relaxed, std::vector<Index>{1});
    EXPECT_NEAR(found.weights.W(0, 0), 1, 1e-14);
    EXPECT_NEAR(found.weights.W(1, 0), 0, 1e-14);
  }
  // The same if the relaxed answer already gives the second input its margin.
  const JointSvm found = solve_joint(two_differences({1, 0}, {0.5, 1}), {0, 0.5});
  EXPECT_NEAR(found.rhs[1], 0.5, 1e-12);
  EXPECT_NEAR(found.weights.W(1, 0), 0, 1e-12);
}

TEST(JointSvm, IsThePlainOneWhereEveryInputIsASupportVector) {
  const AttentionTask task = two_differences({1, 0}, {0, 1});
  const JointSvm found = solve_joint(task, {0, 0});
  EXPECT_EQ(found.rhs, (std::vector<double>{1, 1}));
  EXPECT_NEAR(found.weights.objective, std::sqrt(2), 1e-14);
}

TEST(JointSvm, AnInputThatCanOnlyBeLevelStaysLevel) {
  // The second input has tokens on both sides, so no margin above 0 is possible.
  const std::vector<double> keys{1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 1};
  const AttentionTask task({.tokens = Array::own(std::vector<double>{1, 0, 0, 1, 0, 0}, {2, 3, 1}),
                            .keys = Array::own(keys, {2, 3, 2}),
                            .head = Array::own(std::vector<double>{1}, {1})});
  const JointSvm found = solve_joint(task, {0, 0.5});
  ASSERT_EQ(found.weights.status, MarginStatus::optimal);
  EXPECT_EQ(found.relaxed, std::vector<Index>{1});
  EXPECT_NEAR(found.weights.W(1, 0), 0, 1e-14);
}

TEST(JointSvm, NumbersOfAHeadAreThoseOfItsSlack) {
  MarginSolution head;
  head.objective = 2;
  head.slack = Eigen::Vector3d(0, 1e-9, 0.5);
  EXPECT_EQ(beyond_margin(head, 10), (std::vector<double>{0, 0, 2.5}));
}

TEST(TwoInputs, StayApartAlthoughTheOtherScoresAreEqual) {
  // docs/claims.md, finding 2: from (R, 0) the second input's force is e^{-2 p_1} against e^{-p_1}.
  const AttentionTask task = two_differences({1, 0}, {-2, 1});
  Threads threads(1);
  MarginSolver solver(threads);
  const MarginProblem problem = MarginProblem::attention(task, zeros());
  const MarginSolution& svm = solver.solve(problem, {});
  ASSERT_TRUE(verify(task, stored(problem, svm, 1e-8)).valid);
  EXPECT_NEAR(svm.W(0, 0), 1, 1e-13);
  EXPECT_NEAR(svm.W(1, 0), 3, 1e-13);
  const RowMatrix first{{1}, {0}};
  for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
    for (const double step : {0.01, 0.1}) {
      const TrainedRun run =
          train(task, {.param = Parametrization::p, .optimizer = optimizer, .step = step, .steps = 20000}, threads,
                {.W = RowMatrix{{6}, {0}}});
      EXPECT_GT(run.W(0, 0), 6) << "it does move";
      EXPECT_LT(run.W(1, 0), 0.01) << "the second force's integral is finite";
      EXPECT_LT(1 - correlation(run.W, first), 1e-6);
      EXPECT_GT(1 - correlation(run.W, svm.W), 0.6);
    }
  }
  // Near zero both inputs have an effect: from there the same task reaches its SVM.
  const TrainedRun near = train(task, {.param = Parametrization::p, .steps = 20000}, threads);
  EXPECT_LT(1 - correlation(near.W, svm.W), 1e-4);
}

}  // namespace
}  // namespace attsvm
