#include "margin/nuclear/wide_path.h"

#include "margin_support.h"

namespace attsvm {
namespace {

struct Answer {
  RowMatrix W;
  double bound = 0;  // bᵀλ / ‖A(λ)‖
};

Answer follow(const MarginProblem& problem, double objective) {
  WidePath path;
  EXPECT_TRUE(path.solve(problem, objective, [] { return false; }));
  Answer answer;
  Eigen::VectorXd lambda;
  path.write(answer.W, lambda);
  Eigen::MatrixXd A = Eigen::MatrixXd::Zero(problem.d(), problem.dz());
  Eigen::VectorXd delta(problem.d());
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      problem.delta(group, k, delta.data());
      A += lambda(k) * delta * ConstVector(group.z, problem.dz()).transpose();
      answer.bound += lambda(k) * problem.rhs(k);
    }
  }
  answer.bound /= Norm::nuclear().dual_of(A);
  return answer;
}

TEST(WidePath, FindsTheIdentity) {  // W₁₁ ≥ 1 and W₂₂ ≥ 1, with a bad guess of the objective
  const AttentionTask task = test::make_task(2, 2, {1, 0, 0, 0, 0, 1, 0, 0}, {1, 0, 0, 1});
  const Answer answer = follow(MarginProblem::attention(task, Selection::single(std::vector<Index>{0, 0})), 1000);
  EXPECT_LE((answer.W - RowMatrix::Identity(2, 2)).norm(), 1e-15);
  EXPECT_NEAR(answer.bound, 2, 1e-14);
}

TEST(WidePath, RowsMayLeaveNoRoom) {  // the second query, relaxed: W₂₂ ≥ 0 and −W₂₂ ≥ 0
  const AttentionTask task = test::make_task(2, 3, {1, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 1}, {1, 0, 0, 1});
  const Answer answer =
      follow(MarginProblem::attention(task, Selection::single(std::vector<Index>{0, 0}), std::vector<Index>{1}), 1);
  RowMatrix expected(2, 2);
  expected << 1, 0, 0, 0;
  EXPECT_LE((answer.W - expected).norm(), 1e-15);
  EXPECT_NEAR(answer.bound, 1, 1e-14);
}

TEST(WidePath, EquationsMayDependOnEachOther) {  // three equal tokens are kept
  const AttentionTask task = test::make_task(1, 4, {1, 1, 1, 1, 1, 1, 0, 0}, {2});
  const Answer answer = follow(MarginProblem::attention(task, Selection::sets({{0, 1, 2}})), 1);
  EXPECT_NEAR(answer.W(0, 0), 0.25, 1e-15);
  EXPECT_NEAR(answer.W(1, 0), 0.25, 1e-15);
}

TEST(WidePath, StopsWhenAsked) {
  const AttentionTask task = test::separable({.n = 3, .T = 3, .d = 4});
  WidePath path;
  EXPECT_FALSE(path.solve(test::selected(task), 1, [] { return true; }));
}

}  // namespace
}  // namespace attsvm
