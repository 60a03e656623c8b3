#include "support.h"
#include "trust/exact_oracle.h"

// Problems on which a solver of ours once went wrong, each by its name.

namespace attsvm::test {
namespace {

std::string file(const std::string& name) { return std::string(ATTSVM_FIXTURES) + "/trust/" + name + ".npz"; }

AttentionTask task_of(const std::string& name) {
  Threads threads(1);
  return load_task(file(name), threads);
}

MarginSolution solved(const MarginProblem& problem) {
  Threads threads(1);
  MarginSolution solution = solve(problem, {}, threads);
  const Verification verdict = verify(problem.task(), stored(problem, solution, 1e-8));
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  return solution;
}

// Multipliers on rows that ask for 0 cancel, and made ‖A(λ)‖ look small.
TEST(Cases, CancellingMultipliersProveNothing) {
  const AttentionTask task = task_of("false_infeasible");
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  const MarginSolution solution = solved(problem);
  EXPECT_EQ(solution.status, MarginStatus::optimal);
  EXPECT_NEAR(solution.objective, 10, 1e-9);
  Threads threads(1);
  StoredSolution witness = load_solution(file("false_infeasible_W"), threads);
  complete(task, witness);
  EXPECT_TRUE(verify(task, witness).valid);
}

// Two kept tokens almost coincide: what their difference demands is no rounding.
TEST(Cases, KeptTokensThatNearlyCoincide) {
  for (const char* name : {"neardup_wrong", "neardup_limit"}) {
    const AttentionTask task = task_of(name);
    const MarginProblem problem = MarginProblem::attention(task, *task.select());
    const ExactAnswer truth = solve_exactly(problem);
    const MarginSolution solution = solved(problem);
    ASSERT_TRUE(truth.feasible);
    EXPECT_NEAR(solution.objective, truth.norm, 1e-9 * truth.norm) << name;
    EXPECT_LE(solution.dual_objective, truth.norm * (1 + 1e-12)) << name;
    EXPECT_NE(solution.status, MarginStatus::infeasible) << name;
  }
}

// Queries of very different sizes.
TEST(Cases, BadlyScaledQueries) {
  for (const char* name : {"limit_wsscale_0", "limit_wsscale_1"}) {
    const AttentionTask task = task_of(name);
    const MarginSolution solution = solved(MarginProblem::attention(task, *task.select()));
    EXPECT_EQ(solution.status, MarginStatus::optimal) << name;
    EXPECT_LE(solution.gap, 1e-8) << name;
  }
}

}  // namespace
}  // namespace attsvm::test
