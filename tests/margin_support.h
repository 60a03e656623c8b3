// Helpers for tests of solvers.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "support.h"

namespace attsvm::test {

AttentionTask separable(Recipe recipe, std::uint64_t seed = 1);

/// What the task's own selection asks.
MarginProblem selected(const AttentionTask& task, std::span<const Index> relax = {});
/// Every query keeps one token.
MarginProblem kept(const AttentionTask& task, Index token, std::span<const Index> relax = {});
MarginProblem first_kept(const AttentionTask& task, std::span<const Index> relax = {});
MarginProblem of_optimal_tokens(const AttentionTask& task);

/// Every third query also keeps a second token.
Selection with_ties(const AttentionTask& task);
std::vector<Index> every_fourth(const AttentionTask& task);

/// The task with other tokens of the same shape.
AttentionTask with_tokens(const AttentionTask& task, const std::function<double(double)>& change);
/// The task with tokens and queries times a number each.
AttentionTask scaled(const AttentionTask& task, double tokens, double queries);
/// n sequences of T tokens with queries (n,dz), or without queries for prompt attention; `kept` becomes its selection.
AttentionTask make_task(Index n, Index T, const std::vector<double>& tokens, const std::vector<double>& queries = {},
                        const std::vector<std::vector<Index>>& kept = {});
/// One row per query: its tokens are δ and 0, and ζ is the query.
AttentionTask of_rows(const RowMatrix& delta, const RowMatrix& zeta);

/// Solves, and verifies the answer unless the problem is a finite part, which has no file to verify.
MarginSolution proven(const MarginProblem& problem, const SolveSettings& settings = {},
                      const MarginSolution* warm_start = nullptr);
/// The same, and expects an optimum in Frobenius norm.
MarginSolution optimum(const MarginProblem& problem);

/// Expects entries that differ by at most `relative` times the largest one.
void expect_near(const RowMatrix& a, const RowMatrix& b, double relative);

}  // namespace attsvm::test
