// Enclosures of matrix norms.
#pragma once

#include <vector>

#include "attsvm/norm.h"
#include "verify/ball.h"

namespace attsvm::internal::proof {

Ball frobenius_norm(const BallMatrix& A);
/// (Σ |A_ij|^p)^(1/p)
Ball power_norm(const BallMatrix& A, const Ball& p);
/// P/(P−1), the power of the dual norm.
Ball dual_power(double power);

/// Approximate singular vectors of a matrix. Proofs with them hold whatever their quality; better vectors give tighter
/// enclosures. The matrix is transposed if it has more columns than rows.
struct SingularVectors {
  Eigen::MatrixXd U, V;
  bool transposed = false;
};

SingularVectors singular_vectors(const RowMatrix& A);

/// What products with approximate singular vectors V (square, with columns v_j) prove about the singular values of A.
/// Y = A V; δ(M) = ‖MᵀM − I‖ by absolute row sums; singular values of Y are those of A up to factors in
/// [√(1 − δ(V)), √(1 + δ(V))].
struct SpectralProof {
  std::vector<Ball> columns;  ///< ‖Y_j‖
  Ball top;                   ///< ‖Y‖, enclosed
  Ball inner;                 ///< Σ u_jᵀ Y_j
  Ball defect_u, defect_v;    ///< δ(U), δ(V)

  /// ‖A‖ = σ_1.
  Ball operator_norm() const;
  /// ‖A‖_* ≤ Σ ‖Y_j‖ / √(1 − δ(V)), since Y is the sum of its columns; ≥ ⟨A, UVᵀ⟩ / ‖UVᵀ‖.
  Ball nuclear_norm() const;
  /// An upper bound on σ_r, r from 1: dropping r − 1 columns of Y leaves a matrix of norm at least σ_r(Y).
  Ball singular_value_bound(Index r) const;
};

SpectralProof prove_spectrum(const BallMatrix& A);

/// Encloses √(largest eigenvalue of G), G = YᵀY, from ‖G‖ ≤ `row_sum` and a column of Y of norm `column`.
Ball top_between(const Ball& column, const Ball& row_sum);

}  // namespace attsvm::internal::proof
