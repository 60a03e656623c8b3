// Helpers for tests of solvers.
#pragma once

#include <span>
#include <vector>

#include "support.h"

namespace attsvm::test {

inline AttentionTask separable(Recipe recipe, std::uint64_t seed = 1) {
  recipe.law = Law::separable;
  return generate(recipe, seed).task;
}

inline MarginProblem selected(const AttentionTask& task, std::span<const Index> relax = {}) {
  return MarginProblem::attention(task, *task.select(), relax);
}

/// Every query keeps one token.
inline MarginProblem kept(const AttentionTask& task, Index token, std::span<const Index> relax = {}) {
  return MarginProblem::attention(
      task, Selection::single(std::vector<Index>(static_cast<std::size_t>(task.queries()), token)), relax);
}

inline MarginProblem first_kept(const AttentionTask& task, std::span<const Index> relax = {}) {
  return kept(task, 0, relax);
}

inline MarginProblem of_optimal_tokens(const AttentionTask& task) {
  return MarginProblem::attention(task, optimal_tokens(task).selection);
}

/// Every third query also keeps a second token.
inline Selection with_ties(const AttentionTask& task) {
  std::vector<std::vector<Index>> kept;
  for (Index i = 0; i < task.queries(); ++i) {
    const Index t = task.select()->first(i);
    kept.push_back({t});
    if (i % 3 == 0 && task.visible(i) > 1) kept.back().push_back((t + 1) % task.visible(i));
  }
  return Selection::sets(kept);
}

inline std::vector<Index> every_fourth(const AttentionTask& task) {
  std::vector<Index> relax;
  for (Index i = 0; i < task.queries(); i += 4) relax.push_back(i);
  return relax;
}

/// The task with other tokens of the same shape.
inline AttentionTask with_tokens(const AttentionTask& task, const std::function<double(double)>& change) {
  TaskArrays arrays = task.arrays();
  const auto old = f64_span(arrays.tokens);
  std::vector<double> tokens(old.begin(), old.end());
  for (double& x : tokens) x = change(x);
  arrays.tokens = Array::own(tokens, arrays.tokens.shape);
  return AttentionTask(arrays);
}

/// Solves, and verifies the answer unless the problem is a finite part, which has no file to verify.
inline MarginSolution proven(const MarginProblem& problem, const SolveSettings& settings = {},
                             const MarginSolution* warm_start = nullptr) {
  Threads threads(1);
  MarginSolution solution = solve(problem, settings, threads, warm_start);
  if (problem.kind() != ProblemKind::finite) {
    const Verification verdict =
        verify(problem.task(), stored(problem, solution, settings.tolerance), {.tolerance = settings.tolerance});
    EXPECT_TRUE(verdict.valid) << verdict.reason;
  }
  return solution;
}

}  // namespace attsvm::test
