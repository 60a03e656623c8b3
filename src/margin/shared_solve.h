#pragma once

#include <optional>

#include "attsvm/margin.h"
#include "margin/rows/row_sums.h"

namespace attsvm::internal {

/// solve() of a problem that processes share; all call it, each with the rows that it has, and get the same answer with
/// the multipliers and slacks of their own rows. It has the bits of solve() by one process. Nothing, on all: only a
/// process that has all rows can solve it, because it is small, its margin soft, or no method of those that add up
/// rows query by query settles it.
std::optional<MarginSolution> solve_shared(const MarginProblem& problem, const SharedRows& shared,
                                           const SolveSettings& settings, Threads& threads,
                                           const MarginSolution* warm_start = nullptr);

}  // namespace attsvm::internal
