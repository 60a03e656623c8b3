// Enclosures of matrix norms.
#pragma once

#include <vector>

#include "attsvm/norm.h"
#include "verify/ball.h"

namespace attsvm::internal::proof {

/// The power P of a norm, from 1 to infinity.
struct Power {
  double rounded = 2;
  Ball exact = 2;  ///< meaningless if P is infinite
};

Power power_of(const Norm& norm);
Power dual_power_of(const Norm& norm);  ///< P/(P−1)

Ball frobenius_norm(const BallMatrix& A);
/// (Σ |x|^P)^(1/P) of some numbers, or the largest |x|.
Ball power_norm(const std::vector<Ball>& x, const Power& power);
/// The same of all entries.
Ball power_norm(const BallMatrix& A, const Power& power);

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
  std::vector<Ball> inner;    ///< u_jᵀ Y_j
  Ball coupling;              ///< at least ‖YᵀY‖_F off the diagonal
  Ball defect_u, defect_v;    ///< δ(U), δ(V)

  /// ‖A‖ = σ_1.
  Ball operator_norm() const;
  /// The Schatten norm. Above, for P ≤ 2: that of Y is at most the power norm of the ‖Y_j‖, because the diagonal of YᵀY
  /// is majorised by its eigenvalues; for P > 2 the triangle inequality splits YᵀY into its diagonal and the rest.
  /// Below: ⟨A, UDVᵀ⟩ / ‖UDVᵀ‖ in the dual norm, for the diagonal D with d_j = ‖Y_j‖^{P−1}.
  Ball schatten_norm(const Power& power) const;
  /// An upper bound on σ_r, r from 1: dropping r − 1 columns of Y leaves a matrix of norm at least σ_r(Y).
  Ball singular_value_bound(Index r) const;
};

SpectralProof prove_spectrum(const BallMatrix& A);

/// Encloses √(largest eigenvalue of G), G = YᵀY, from ‖G‖ ≤ `row_sum` and a column of Y of norm `column`.
Ball top_between(const Ball& column, const Ball& row_sum);

}  // namespace attsvm::internal::proof
