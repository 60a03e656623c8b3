#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// By how much W exceeds row k, given the slack of its query if the margin is soft. Files that do not fit together have
/// no such slack.
inline double room_of(const StoredSolution& solution, std::size_t k) {
  if (!solution.is_soft() || solution.row_equal[k] || !(solution.rhs[k] > 0) || k >= solution.row_query.size())
    return solution.slack[k];
  const auto query = static_cast<std::size_t>(solution.row_query[k]);
  return solution.slack[k] + (query < solution.xi.size() ? solution.xi[query] : 0);
}

/// Whether W meets row k with equality, given the slack of its query, as MarginSolution::support counts it.
inline bool is_support(const StoredSolution& solution, std::size_t k) {
  return solution.status != "infeasible" &&
         std::abs(room_of(solution, k)) <= kSupportTolerance * std::max(1.0, std::abs(solution.rhs[k]));
}

/// The number of columns of K and Q; without them, the numerical rank of W.
inline Index rank_of(const StoredSolution& solution) {
  return solution.has_factors ? solution.K.cols() : numerical_rank(solution.W);
}

/// "spectral norm" for spec, "Schatten norm of power 3" for schatten:3; a name that no norm has stays as it is.
std::string norm_words(const std::string& name);

}  // namespace attsvm::internal
