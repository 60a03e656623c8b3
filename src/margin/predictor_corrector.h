#pragma once

#include <algorithm>

#include "attsvm/array.h"

namespace attsvm::internal {

// What Mehrotra's predictor–corrector methods share on the rows, s ≥ 0 and λ ≥ 0, whatever else their cone holds.
// Vectors are Eigen's or buffers.

/// `most`, or the longest step along dx that keeps x_k ≥ 0 where bounded(k), if that is shorter.
template <class Real, class Vector, class Bounded>
Real step_to_boundary(Index first, Index last, const Vector& x, const Vector& dx, Real most, const Bounded& bounded) {
  for (Index k = first; k < last; ++k) {
    if (dx[k] < 0 && bounded(k)) most = std::min(most, -x[k] / dx[k]);
  }
  return most;
}

/// Σ sλ after steps of these lengths. Equations have s = ds = 0 and add nothing.
template <class Real, class Vector>
Real complementarity(Index first, Index last, const Vector& s, const Vector& ds, Real primal, const Vector& lambda,
                     const Vector& dlambda, Real dual) {
  Real sum = 0;
  for (Index k = first; k < last; ++k) sum += (s[k] + primal * ds[k]) * (lambda[k] + dual * dlambda[k]);
  return sum;
}

}  // namespace attsvm::internal
