#pragma once

#include "attsvm/margin.h"

namespace attsvm::internal {

/// δ of a row of the group in any arithmetic: x_keep − x_drop, or sign·x_keep in a value problem. `row` counts from the
/// first row of the problem.
template <class Real>
void row_difference(const MarginProblem& problem, const MarginGroup& group, Index row, Real* out) {
  const Index d = problem.d(), drop = problem.drop(row);
  const double* keep = group.X + group.keep * d;
  if (drop < 0) {
    for (Index j = 0; j < d; ++j) out[j] = group.sign * keep[j];  // exact: the sign is ±1
    return;
  }
  const double* other = group.X + drop * d;
  for (Index j = 0; j < d; ++j) {
    out[j] = keep[j];
    out[j] -= other[j];
  }
}

}  // namespace attsvm::internal
