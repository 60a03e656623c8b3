#pragma once

#include <algorithm>
#include <cmath>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// Whether W meets row k with equality, as MarginSolution::support counts it.
inline bool is_support(const StoredSolution& solution, std::size_t k) {
  return solution.status != "infeasible" &&
         std::abs(solution.slack[k]) <= kSupportTolerance * std::max(1.0, std::abs(solution.rhs[k]));
}

/// The number of columns of K and Q; without them, the numerical rank of W.
inline Index rank_of(const StoredSolution& solution) {
  return solution.has_factors ? solution.K.cols() : numerical_rank(solution.W);
}

}  // namespace attsvm::internal
