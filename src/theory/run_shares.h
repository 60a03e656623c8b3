#pragma once

#include <optional>

#include "attsvm/theory.h"

namespace attsvm::internal {

/// The smallest δᵀWζ/b of the rows ≥ b with b > 0; NaN if there is none.
double smallest_asked(const MarginProblem& problem, const RowMatrix& W);

/// Check::shares, and Check::implied_solution.
struct RunShares {
  std::vector<MarginShares> list;
  std::vector<double> smallest;  ///< rows of the points
  std::optional<MarginSolution> implied;
};

/// `known` are answers to the problem that need not be found again: the Frobenius one first, which tells whether there
/// are others.
RunShares shares_along(const RunTrace& run, const MarginProblem& problem, std::span<const MarginSolution* const> known,
                       const std::vector<Norm>& norms, SolveSettings settings, MarginSolver& solver);

}  // namespace attsvm::internal
