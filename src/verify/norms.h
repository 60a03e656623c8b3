// Norms of matrices, enclosed.
#pragma once

#include <vector>

#include "attsvm/norm.h"
#include "verify/ball.h"

namespace attsvm::proof {

Ball frobenius_norm(const BallMatrix& A);
/// (Σ |A_ij|^p)^(1/p)
Ball power_norm(const BallMatrix& A, const Ball& p);
/// P/(P−1)
Ball dual_power(double power);

/// Approximate singular vectors of a matrix, of any quality: what is proven with them holds for any, and is as tight as
/// they are good. Columns: no more than rows (the matrix is taken as its transpose if need be).
struct SingularVectors {
  Eigen::MatrixXd U, V;
  bool transposed = false;
};

SingularVectors singular_vectors(const RowMatrix& A);

/// What products with approximate singular vectors V (square, columns v_j) prove about the singular values of A.
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
  /// At least σ_r, r from 1: dropping r − 1 columns of Y leaves a matrix of no smaller norm.
  Ball singular_value_bound(Index r) const;
};

SpectralProof prove_spectrum(const BallMatrix& A);

/// The enclosure of √(largest eigenvalue of G), where ‖G‖ ≤ `row_sum` and Y has a column of norm `column`.
Ball top_between(const Ball& column, const Ball& row_sum);

}  // namespace attsvm::proof
