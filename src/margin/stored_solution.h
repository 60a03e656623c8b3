#pragma once

#include <algorithm>
#include <cmath>
#include <string>

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

/// "spectral norm" for spec, "Schatten norm of power 3" for schatten:3; a name that no norm has stays as it is.
std::string norm_words(const std::string& name);

}  // namespace attsvm::internal
