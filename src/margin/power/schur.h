#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

// Newton's equations for the multipliers of dense rows: R F Rᵀ + D with diagonal F > 0 and D ≥ 0, and a little more on
// the diagonal for rows that depend on each other. `Real` is double or long double.

template <class Real>
using PowerMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using PowerVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

/// Computes the matrix and its Cholesky factor, in the lower triangle of `schur`; `scaled` is scratch. False: not
/// positive definite.
template <class Real>
bool form_schur(const PowerMatrix<Real>& R, const PowerVector<Real>& F, const PowerVector<Real>& D,
                PowerMatrix<Real>& scaled, PowerMatrix<Real>& schur);
/// x ← (LLᵀ)⁻¹x
template <class Real>
void solve_schur(const PowerMatrix<Real>& schur, PowerVector<Real>& x);

}  // namespace attsvm::internal
