#include "margin/streaming/nuclear_working_set.h"

#include <cmath>

#include "base/blas.h"
#include "margin/certify/certificate.h"
#include "margin/nuclear/solver.h"
#include "margin/streaming/singular_split.h"
#include "margin/streaming/working_set.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using Outcome = NuclearWorkingSet::Outcome;
using test::every_fourth;
using test::separable;
using test::with_ties;

const SolveSettings kNuclear{.norm = Norm::nuclear()};

MarginSolution start_of(const MarginProblem& problem, double tolerance = 1e-2) {
  Threads alone(1);
  return solve(problem, {.tolerance = tolerance}, alone);
}

MarginSolution answer_of(const NuclearWorkingSet& solver, const MarginProblem& problem, double tolerance) {
  MarginSolution solution;
  solution.norm = Norm::nuclear();
  solver.write(solution.K, solution.Q, solution.dual);
  Threads alone(1);
  Certifier(alone).certify(problem, tolerance, solution);
  EXPECT_TRUE(verify(problem.task(), stored(problem, solution, tolerance), {.tolerance = tolerance}).valid);
  return solution;
}

/// The working-set answer is certified, verified, and agrees with that of the interior point method.
MarginSolution expect_same_optimum(const MarginProblem& problem) {
  Threads threads(2);
  NuclearWorkingSet solver(problem, threads);
  const MarginSolution start = start_of(problem);
  EXPECT_EQ(solver.solve(1e-9, start.W, start.dual, nullptr), Outcome::converged);
  MarginSolution solution = answer_of(solver, problem, 1e-9);
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap << " " << solution.violation;
  EXPECT_GE(solution.objective, (1 - 1e-9) * start.dual_objective);  // ‖W‖_* ≥ ‖W‖_F
  NuclearSolver other;
  other.solve(problem, start_of(problem, 1e-8), 1e-9, [](const SolveProgress&) { return false; });
  MarginSolution exact;
  exact.norm = Norm::nuclear();
  other.write(exact.K, exact.Q, exact.dual);
  Certifier(threads).certify(problem, 1e-9, exact);
  EXPECT_EQ(exact.status, MarginStatus::optimal);
  EXPECT_NEAR(solution.objective, exact.objective, 2e-9 * exact.objective);
  return solution;
}

TEST(SingularSplit, GivesBackTheMatrix) {
  Threads threads(2);
  const SingleThreadBlas single_thread;
  for (const auto& [d, dz, rank] :
       {std::array<Index, 3>{7, 7, 7}, {70, 130, 70}, {130, 70, 70}, {90, 90, 3}, {5, 9, 0}}) {
    RowMatrix B = RowMatrix::Zero(d, dz);
    for (Index k = 0; k < rank; ++k) {
      Eigen::VectorXd u(d), v(dz);
      for (Index j = 0; j < d; ++j) u(j) = std::sin(static_cast<double>(1 + j * (3 * k + 2) + j * j));
      for (Index j = 0; j < dz; ++j) v(j) = std::cos(static_cast<double>(j * (2 * k + 1) + 2 * j * j));
      B += u * v.transpose();
    }
    SingularSplit split(d, dz, threads);
    ASSERT_TRUE(split.compute(B.data()));
    const Eigen::Map<const RowMatrix> U(split.left(), d, d), V(split.right(), dz, dz);
    EXPECT_LE((U * U.transpose() - RowMatrix::Identity(d, d)).norm(), 1e-9);
    EXPECT_LE((V * V.transpose() - RowMatrix::Identity(dz, dz)).norm(), 1e-9);
    RowMatrix W(d, dz);
    const double level = 1e-9 * split.value(0);
    split.shrink(level, W.data());
    EXPECT_LE((W - B).norm(), 1e-7 * B.norm());
    EXPECT_EQ(split.rank_above(1e-6 * split.value(0)), rank);
    EXPECT_NEAR(largest_singular_value(B.data(), d, dz), split.value(0), 1e-13 * split.value(0));
  }
}

TEST(NuclearWorkingSet, FindsTheOptimum) {
  for (const Recipe& size :
       {Recipe{.n = 60, .T = 4, .d = 16}, Recipe{.n = 20, .T = 16, .d = 24}, Recipe{.n = 12, .T = 16, .d = 30},
        Recipe{.n = 60, .T = 12, .d = 32, .dz = 20}, Recipe{.n = 60, .T = 12, .d = 20, .dz = 32}}) {
    const AttentionTask task = separable(size);
    const MarginSolution solution = expect_same_optimum(MarginProblem::attention(task, *task.select()));
    EXPECT_LT(solution.K.cols(), size.d);
  }
}

TEST(NuclearWorkingSet, RelaxedQueriesAndTies) {
  const AttentionTask task = separable({.n = 50, .T = 12, .d = 32});
  expect_same_optimum(MarginProblem::attention(task, *task.select(), every_fourth(task)));
  expect_same_optimum(MarginProblem::attention(task, with_ties(task)));
  expect_same_optimum(MarginProblem::attention(task, with_ties(task), every_fourth(task)));
}

TEST(NuclearWorkingSet, RaggedAndCausal) {
  const AttentionTask ragged = separable({.n = 50, .T = 16, .d = 32, .shortest = 1});
  expect_same_optimum(MarginProblem::attention(ragged, *ragged.select()));
  const AttentionTask causal = separable({.n = 5, .T = 12, .d = 32, .pattern = QueryPattern::causal});
  expect_same_optimum(MarginProblem::attention(causal, *causal.select()));
}

TEST(NuclearWorkingSet, PlantedOptimumWithItsRank) {
  const Drawn drawn =
      generate({.law = Law::planted, .n = 120, .T = 20, .d = 40, .rank = 5, .norm = PlantedNorm::nuclear}, 2);
  const MarginProblem problem = MarginProblem::attention(drawn.task, *drawn.task.select());
  ASSERT_GT(problem.rows(), 1500);
  Threads threads(2);
  SolveSettings settings = kNuclear;
  settings.tolerance = 1e-10;
  const MarginSolution solution = solve(problem, settings, threads);
  EXPECT_EQ(solution.method, "nuclear working set");
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap;
  EXPECT_EQ(solution.K.cols(), 5);
  EXPECT_TRUE(verify(problem.task(), stored(problem, solution, 1e-10), {.tolerance = 1e-10}).valid);
}

TEST(NuclearWorkingSet, SizesFarFromOne) {
  const AttentionTask drawn = separable({.n = 40, .T = 12, .d = 24});
  for (const double factor : {1e-25, 1e-6, 1e6, 1e25}) {
    const AttentionTask task = test::scaled(drawn, factor, 1 / std::sqrt(factor));
    const MarginProblem problem = MarginProblem::attention(task, *task.select());
    Threads threads(1);
    NuclearWorkingSet solver(problem, threads);
    const MarginSolution start = start_of(problem);
    EXPECT_EQ(solver.solve(1e-8, start.W, start.dual, nullptr), Outcome::converged) << factor;
    EXPECT_EQ(answer_of(solver, problem, 1e-8).status, MarginStatus::optimal) << factor;
  }
}

TEST(NuclearWorkingSet, WarmStart) {
  const AttentionTask task = separable({.n = 100, .T = 20, .d = 32});
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  ASSERT_GT(problem.rows(), 1500);
  Threads threads(2);
  const MarginSolution cold = solve(problem, kNuclear, threads);
  EXPECT_EQ(cold.status, MarginStatus::optimal);
  SolveSettings settings = kNuclear;
  settings.tolerance = 2e-8;
  const MarginSolution again = solve(problem, settings, threads, &cold);
  EXPECT_EQ(again.status, MarginStatus::optimal);
  EXPECT_EQ(again.iterations, 0);
  EXPECT_TRUE(verify(task, stored(problem, again, 2e-8), {.tolerance = 2e-8}).valid);
  const MarginSolution frobenius = solve(problem, {}, threads);
  const MarginSolution other = solve(problem, settings, threads, &frobenius);
  EXPECT_EQ(other.status, MarginStatus::optimal);
  EXPECT_NEAR(other.objective, cold.objective, 4e-8 * cold.objective);
  EXPECT_TRUE(verify(task, stored(problem, other, 2e-8), {.tolerance = 2e-8}).valid);
}

TEST(NuclearWorkingSet, StopsWhenAsked) {
  const AttentionTask task = separable({.n = 100, .T = 20, .d = 32});
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  const MarginSolution start = start_of(problem);
  Threads threads(1);
  double bound = 0;
  for (const Index limit : {0, 4, 12}) {
    NuclearWorkingSet solver(problem, threads);
    const auto stop = [&](const SolveProgress& progress) { return progress.iteration >= limit; };
    EXPECT_EQ(solver.solve(1e-8, start.W, start.dual, stop), Outcome::stopped);
    EXPECT_EQ(solver.iterations(), limit);
    const MarginSolution solution = answer_of(solver, problem, 1e-8);
    EXPECT_EQ(solution.status, MarginStatus::stalled);  // the certifier does not know that the solve was stopped
    EXPECT_GT(solution.dual_objective, bound);
    bound = solution.dual_objective;
  }
  SolveSettings settings = kNuclear;
  settings.iteration_limit = 3;
  const MarginSolution limited = solve(problem, settings, threads);
  EXPECT_EQ(limited.status, MarginStatus::limit);
  EXPECT_TRUE(verify(task, stored(problem, limited, 1e-8)).valid);
}

TEST(NuclearWorkingSet, ConflictsAreProven) {
  const AttentionTask task = generate({.n = 150, .T = 20, .d = 6}, 3).task;  // far more rows than can be met
  const MarginProblem problem = MarginProblem::attention(task, Selection::single(std::vector<Index>(150, 0)));
  Threads threads(2);
  const MarginSolution solution = solve(problem, kNuclear, threads);
  EXPECT_EQ(solution.status, MarginStatus::infeasible);
  EXPECT_TRUE(verify(task, stored(problem, solution, 1e-8)).valid);
}

TEST(NuclearWorkingSet, NothingDemanded) {
  const AttentionTask task = separable({.n = 5, .T = 6, .d = 4});
  const MarginProblem problem = MarginProblem::attention(task, *task.select(), std::vector<Index>{0, 1, 2, 3, 4});
  const MarginSolution start = start_of(problem);
  Threads threads(1);
  NuclearWorkingSet solver(problem, threads);
  EXPECT_EQ(solver.solve(1e-8, start.W, start.dual, nullptr), Outcome::converged);
  EXPECT_EQ(answer_of(solver, problem, 1e-8).objective, 0);
}

}  // namespace
}  // namespace attsvm
