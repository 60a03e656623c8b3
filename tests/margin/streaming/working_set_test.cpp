#include "margin/streaming/working_set.h"

#include <cmath>
#include <limits>

#include "margin/certify/certificate.h"
#include "margin/frobenius/exact_solver.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using Outcome = WorkingSetSolver::Outcome;
using test::every_fourth;
using test::separable;
using test::with_ties;

MarginSolution answer_of(const WorkingSetSolver& solver, const MarginProblem& problem, double tolerance) {
  MarginSolution solution;
  solver.write(solution.W, solution.dual);
  Threads alone(1);
  Certifier(alone).certify(problem, tolerance, solution);
  return solution;
}

MarginSolution exact_answer(const MarginProblem& problem) {
  ExactSolver solver;
  EXPECT_EQ(solver.solve(problem, {}, [] { return false; }), ExactSolver::Outcome::optimal);
  MarginSolution solution;
  solver.write(solution.W, solution.dual);
  Threads alone(1);
  Certifier(alone).certify(problem, 1e-8, solution);
  return solution;
}

/// The working-set answer is certified, and agrees with the exact one.
MarginSolution expect_same_optimum(const MarginProblem& problem) {
  Threads threads(2);
  WorkingSetSolver solver(problem, threads);
  EXPECT_EQ(solver.solve(1e-8, nullptr, nullptr), Outcome::converged);
  MarginSolution solution = answer_of(solver, problem, 1e-8);
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap << " " << solution.violation;
  const MarginSolution exact = exact_answer(problem);
  EXPECT_NEAR(solution.objective, exact.objective, 1e-7 * exact.objective);
  EXPECT_LE((solution.W - exact.W).norm(), 2e-4 * exact.W.norm());  // the objective is flat: √gap
  EXPECT_FALSE(solver.history().empty());
  EXPECT_GT(solver.iterations(), 0);
  return solution;
}

TEST(WorkingSet, FindsTheExactOptimum) {
  for (const Recipe& size : {Recipe{.n = 60, .T = 4, .d = 16}, Recipe{.n = 20, .T = 16, .d = 24},
                             Recipe{.n = 60, .T = 24, .d = 32, .dz = 20}, Recipe{.n = 120, .T = 40, .d = 48}}) {
    const AttentionTask task = separable(size);
    expect_same_optimum(MarginProblem::attention(task, *task.select()));
  }
}

TEST(WorkingSet, SupportAsLargeAsTheUnknownsAllow) {
  const AttentionTask task = separable({.n = 150, .T = 20, .d = 12});  // 2850 rows, 144 unknowns
  expect_same_optimum(MarginProblem::attention(task, *task.select()));
}

TEST(WorkingSet, RelaxedQueries) {
  const AttentionTask task = separable({.n = 60, .T = 24, .d = 32});
  expect_same_optimum(MarginProblem::attention(task, *task.select(), every_fourth(task)));
}

TEST(WorkingSet, Ties) {
  const AttentionTask task = separable({.n = 60, .T = 24, .d = 32});
  expect_same_optimum(MarginProblem::attention(task, with_ties(task)));
  expect_same_optimum(MarginProblem::attention(task, with_ties(task), every_fourth(task)));
}

TEST(WorkingSet, RaggedAndCausal) {
  const AttentionTask ragged = separable({.n = 60, .T = 30, .d = 32, .shortest = 1});
  expect_same_optimum(MarginProblem::attention(ragged, *ragged.select()));
  const AttentionTask causal = separable({.n = 8, .T = 20, .d = 48, .pattern = QueryPattern::causal});
  expect_same_optimum(MarginProblem::attention(causal, *causal.select()));
}

TEST(WorkingSet, EqualitiesToAnyNumber) {
  const AttentionTask task = separable({.n = 80, .T = 10, .d = 24});
  std::vector<std::vector<Index>> kept(80);
  RowMatrix logs(80, 10);
  for (Index i = 0; i < 80; ++i) {
    for (Index t = 0; t < 10; ++t) {
      logs(i, t) = std::sin(static_cast<double>(3 * i + 7 * t));
      if (t % 2 == i % 2) kept[static_cast<std::size_t>(i)].push_back(t);
    }
  }
  expect_same_optimum(MarginProblem::finite_part(task, Selection::sets(kept), logs));
  expect_same_optimum(MarginProblem::finite_part(task, Selection::sets(kept), 1e-3 * logs));
}

TEST(WorkingSet, SizesFarFromOne) {
  const AttentionTask drawn = separable({.n = 40, .T = 20, .d = 24});
  for (const double factor : {1e-25, 1e-6, 1e6, 1e25}) {
    const AttentionTask task = test::scaled(drawn, factor, 1 / std::sqrt(factor));
    const MarginProblem problem = MarginProblem::attention(task, *task.select());
    Threads threads(1);
    WorkingSetSolver solver(problem, threads);
    EXPECT_EQ(solver.solve(1e-8, nullptr, nullptr), Outcome::converged) << factor;
    EXPECT_EQ(answer_of(solver, problem, 1e-8).status, MarginStatus::optimal) << factor;
  }
}

TEST(WorkingSet, WarmStart) {
  const AttentionTask task = separable({.n = 100, .T = 32, .d = 48});
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  Threads threads(1);
  WorkingSetSolver cold(problem, threads), warm(problem, threads);
  EXPECT_EQ(cold.solve(1e-5, nullptr, nullptr), Outcome::converged);
  const MarginSolution rough = answer_of(cold, problem, 1e-5);
  EXPECT_EQ(warm.solve(1e-8, &rough.dual, nullptr), Outcome::converged);  // whatever the scale of the dual
  const MarginSolution fine = answer_of(warm, problem, 1e-8);
  EXPECT_EQ(fine.status, MarginStatus::optimal);
  WorkingSetSolver again(problem, threads);
  EXPECT_EQ(again.solve(2e-8, &fine.dual, nullptr), Outcome::converged);
  EXPECT_EQ(again.iterations(), 0);
  Eigen::VectorXd shaken = fine.dual;
  for (Index k = 0; k < shaken.size(); k += 2) shaken(k) *= 1.01;
  EXPECT_EQ(again.solve(1e-8, &shaken, nullptr), Outcome::converged);
  EXPECT_LT(again.iterations(), cold.iterations());
}

TEST(WorkingSet, StopsWhenAsked) {
  const AttentionTask task = separable({.n = 100, .T = 32, .d = 48});
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  Threads threads(1);
  double bound = 0;
  for (const Index limit : {1, 3, 6}) {
    WorkingSetSolver solver(problem, threads);
    const auto stop = [&](const SolveProgress& progress) { return progress.iteration >= limit; };
    EXPECT_EQ(solver.solve(1e-8, nullptr, stop), Outcome::stopped);
    EXPECT_EQ(solver.iterations(), limit);
    const MarginSolution solution = answer_of(solver, problem, 1e-8);
    EXPECT_GT(solution.dual_objective, bound);
    bound = solution.dual_objective;
  }
}

TEST(WorkingSet, ConflictsStall) {
  const AttentionTask task = generate({.n = 150, .T = 20, .d = 6}, 3).task;  // far more rows than can be met
  const MarginProblem problem = MarginProblem::attention(task, Selection::single(std::vector<Index>(150, 0)));
  Threads threads(1);
  WorkingSetSolver solver(problem, threads);
  EXPECT_EQ(solver.solve(1e-8, nullptr, nullptr), Outcome::stalled);
  EXPECT_EQ(solver.history().back().objective, std::numeric_limits<double>::infinity());
}

TEST(WorkingSet, NothingDemanded) {
  const AttentionTask task = separable({.n = 5, .T = 6, .d = 4});
  const MarginProblem problem = MarginProblem::attention(task, *task.select(), std::vector<Index>{0, 1, 2, 3, 4});
  Threads threads(1);
  WorkingSetSolver solver(problem, threads);
  EXPECT_EQ(solver.solve(1e-8, nullptr, nullptr), Outcome::converged);
  EXPECT_EQ(answer_of(solver, problem, 1e-8).objective, 0);
}

TEST(WorkingSet, RowsThatReadZero) {
  TaskArrays arrays = separable({.n = 30, .T = 20, .d = 24}).arrays();
  const auto old = f64_span(arrays.tokens);
  std::vector<double> tokens(old.begin(), old.end());
  const Selection select = *AttentionTask(arrays).select();
  for (Index t = 0; t < 20; ++t) {  // query 0 has a copy of the kept token, query 1 has only copies
    const auto at = [&](Index i, Index token) { return tokens.begin() + (i * 20 + token) * 24; };
    if (t == 0) std::copy_n(at(0, select.first(0)), 24, at(0, (select.first(0) + 1) % 20));
    if (t != select.first(1)) std::copy_n(at(1, select.first(1)), 24, at(1, t));
  }
  arrays.tokens = Array::own(tokens, arrays.tokens.shape);
  const AttentionTask task(arrays);
  expect_same_optimum(MarginProblem::attention(task, select, std::vector<Index>{0, 1}));
}

TEST(WorkingSet, IsTriedForAWhileWhereTheInteriorPointMethodIsSafer) {
  const AttentionTask quick = separable({.n = 60, .T = 128, .d = 20});
  EXPECT_EQ(test::optimum(test::selected(quick)).method, "working set");
  const AttentionTask slow = separable({.n = 250, .T = 32, .d = 16});  // near infeasibility
  EXPECT_EQ(test::optimum(test::selected(slow)).method, "interior point");
}

TEST(WorkingSet, ValueProblemsAreNotForIt) {
  const AttentionTask task = separable({.n = 5, .T = 6, .d = 4});
  const MarginProblem problem = MarginProblem::value(task, *task.select());
  Threads threads(1);
  EXPECT_THROW(WorkingSetSolver(problem, threads), std::logic_error);
}

}  // namespace
}  // namespace attsvm
