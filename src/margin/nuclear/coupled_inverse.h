#pragma once

#include <Eigen/Cholesky>

#include "attsvm/array.h"

namespace attsvm::internal {

/// [I −A; −Aᵀ I]⁻¹ = [(I − AAᵀ)⁻¹ C; Cᵀ (I − AᵀA)⁻¹], C = A(I − AᵀA)⁻¹, for ‖A‖ < 1: what barriers of that constraint
/// are differentiated with. Both sizes of A are multiples of 4. Keeps its memory between calls.
class CoupledInverse {
 public:
  /// False: ‖A‖ ≥ 1; the other functions must not be called then.
  bool factor(const Eigen::MatrixXd& A);
  double log_det() const;  ///< of I − AᵀA
  /// T = `times` the inverse. A must be the matrix that was factorised.
  void invert(const Eigen::MatrixXd& A, double times, Eigen::MatrixXd& T);

 private:
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::MatrixXd gram_, coupling_, transposed_;
};

}  // namespace attsvm::internal
