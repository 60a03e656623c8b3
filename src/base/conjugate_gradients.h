#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

/// Preconditioned conjugate gradients on vectors that the caller holds, until residualᵀ M⁻¹ residual has fallen by
/// accuracy², or for `limit` steps. Returns how many were taken.
///
/// move(length): the solution and the residual after a step of that length along the direction (0 at first), and
/// M⁻¹ residual; returns residualᵀ M⁻¹ residual, or 0 to end.
/// turn(share): direction = M⁻¹ residual + share · direction, and the matrix times it; returns the product of the two,
/// or 0 to end.
template <class Real, class Move, class Turn>
Index conjugate_gradients(Index limit, Real accuracy, const Move& move, const Turn& turn) {
  Real first = 0, old = 0, length = 0;
  for (Index count = 0;; ++count) {
    const Real now = move(length);
    if (count == 0) first = now;
    if (count == limit || !(now > accuracy * accuracy * first)) return count;
    const Real curvature = turn(count > 0 ? now / old : Real(0));
    if (!(curvature > 0)) return count;
    old = now;
    length = now / curvature;
  }
}

}  // namespace attsvm::internal
