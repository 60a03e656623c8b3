// Solvers give the same bytes for any number of threads.
#include <vector>

#include "margin/conflict/search.h"
#include "margin/frobenius/interior_point.h"
#include "margin/streaming/nuclear_working_set.h"
#include "margin/streaming/working_set.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::every_fourth;
using test::kept;
using test::of_optimal_tokens;
using test::proven;
using test::selected;
using test::separable;
using test::with_ties;

TEST(ThreadedConflictSearch, TheNumberOfThreadsDoesNotMatter) {
  const Drawn drawn = generate({.n = 700, .T = 9, .d = 6, .shortest = 2}, 5);
  const MarginProblem problem = kept(drawn.task, 0);
  const auto search = [&](int count) {
    Threads threads(count);
    return search_conflict(problem, threads, [] { return false; });
  };
  const ConflictSearch one = search(1), three = search(3);
  EXPECT_EQ(one.outcome, ConflictSearch::Outcome::conflict);
  EXPECT_EQ(one.W, three.W);
  EXPECT_EQ(one.lambda, three.lambda);
}

TEST(ThreadedInteriorPoint, TheNumberOfThreadsDoesNotMatter) {
  const Drawn drawn = generate({.law = Law::separable, .n = 700, .T = 9, .d = 7, .shortest = 2}, 5);
  const MarginProblem problem = selected(drawn.task);
  RowMatrix W[2];
  Eigen::VectorXd lambda[2];
  for (const int count : {1, 3}) {
    Threads threads(count);
    InteriorPointSolver solver(problem, threads);
    EXPECT_EQ(solver.solve(1e-8, nullptr), InteriorPointSolver::Outcome::converged);
    solver.write(W[count / 2], lambda[count / 2]);
  }
  EXPECT_EQ(W[0], W[1]);
  EXPECT_EQ(lambda[0], lambda[1]);
}

TEST(ThreadedWorkingSet, SameBytesForAnyNumberOfThreads) {
  const AttentionTask task = separable({.n = 200, .T = 24, .d = 32, .shortest = 3});
  const MarginProblem problem = MarginProblem::attention(task, with_ties(task), every_fourth(task));
  RowMatrix W[3];
  Eigen::VectorXd lambda[3];
  std::size_t at = 0;
  for (const int count : {1, 2, 5}) {
    Threads threads(count);
    WorkingSetSolver solver(problem, threads);
    EXPECT_EQ(solver.solve(1e-8, nullptr, nullptr), WorkingSetSolver::Outcome::converged);
    solver.write(W[at], lambda[at]);
    EXPECT_EQ(W[at], W[0]);
    EXPECT_EQ(lambda[at], lambda[0]);
    ++at;
  }
}

TEST(ThreadedNuclearWorkingSet, SameBytesForAnyNumberOfThreads) {
  const AttentionTask task = separable({.n = 100, .T = 12, .d = 40, .shortest = 3});
  const MarginProblem problem = MarginProblem::attention(task, with_ties(task), every_fourth(task));
  const MarginSolution start = proven(problem, {.tolerance = 1e-2});
  RowMatrix K[3], Q[3];
  Eigen::VectorXd lambda[3];
  std::size_t at = 0;
  for (const int count : {1, 2, 5}) {
    Threads threads(count);
    NuclearWorkingSet solver(problem, threads);
    EXPECT_EQ(solver.solve(1e-8, start.W, start.dual, nullptr), NuclearWorkingSet::Outcome::converged);
    solver.write(K[at], Q[at], lambda[at]);
    EXPECT_EQ(K[at], K[0]);
    EXPECT_EQ(Q[at], Q[0]);
    EXPECT_EQ(lambda[at], lambda[0]);
    ++at;
  }
}

TEST(ThreadedSolveMany, EqualsOneByOne) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < 60; ++k) {
    const Law law = k % 3 == 0 ? Law::separable : k % 3 == 1 ? Law::infeasible : Law::planted;
    tasks.push_back(generate({.law = law, .n = 2 + k % 7, .T = 2 + k % 5, .d = 2 + k % 6}, 5, k).task);
  }
  std::vector<MarginProblem> problems;
  for (const AttentionTask& task : tasks) problems.push_back(MarginProblem::attention(task, *task.select()));
  std::vector<MarginSolution> alone;
  for (const MarginProblem& problem : problems) alone.push_back(proven(problem));
  for (const int count : {1, 2, 3}) {
    Threads threads(count);
    MarginSolver solver(threads);
    const std::span<const MarginSolution> many = solver.solve_many(problems, {});
    ASSERT_EQ(many.size(), problems.size());
    for (std::size_t k = 0; k < many.size(); ++k) {
      EXPECT_EQ(many[k].status, alone[k].status);
      EXPECT_EQ(many[k].W, alone[k].W);
      EXPECT_EQ(many[k].dual, alone[k].dual);
      EXPECT_EQ(many[k].slack, alone[k].slack);
      EXPECT_EQ(many[k].iterations, alone[k].iterations);
    }
    std::vector<const double*> before;
    for (const MarginSolution& solution : many) before.push_back(solution.W.data());
    solver.solve_many(problems, {});
    for (std::size_t k = 0; k < many.size(); ++k) EXPECT_EQ(many[k].W.data(), before[k]);
    const std::vector<MarginSolution> copies = solve_many(problems, {}, threads);
    for (std::size_t k = 0; k < many.size(); ++k) EXPECT_EQ(many[k].W, copies[k].W);
  }
}

TEST(ThreadedNuclearMany, EqualsOneByOne) {
  std::vector<AttentionTask> tasks;
  std::vector<MarginProblem> problems;
  for (std::uint32_t k = 0; k < 20; ++k) tasks.push_back(generate({.n = 5, .T = 5, .d = 4}, 6, k).task);
  for (const AttentionTask& task : tasks) problems.push_back(of_optimal_tokens(task));
  for (const int count : {1, 2}) {
    Threads threads(count);
    const std::vector<MarginSolution> many = solve_many(problems, {.norm = Norm::nuclear()}, threads);
    for (std::size_t k = 0; k < many.size(); ++k) {
      const MarginSolution alone = proven(problems[k], {.norm = Norm::nuclear()});
      EXPECT_EQ(many[k].W, alone.W);
      EXPECT_EQ(many[k].dual, alone.dual);
    }
  }
}

}  // namespace
}  // namespace attsvm
