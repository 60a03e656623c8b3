#pragma once

#include <Eigen/Cholesky>

#include "attsvm/array.h"

namespace attsvm {

/// [I −A; −Aᵀ I]⁻¹ = [(I − AAᵀ)⁻¹ C; Cᵀ (I − AᵀA)⁻¹], C = A(I − AᵀA)⁻¹, for ‖A‖ < 1: what barriers of that constraint
/// are differentiated with. Both sizes of A are multiples of 4. Memory is kept.
class CoupledInverse {
 public:
  /// False: ‖A‖ ≥ 1, and nothing else can be asked.
  bool factor(const Eigen::MatrixXd& A);
  double log_det() const;  ///< of I − AᵀA
  /// T = `times` that inverse, of the A that was factorised.
  void invert(const Eigen::MatrixXd& A, double times, Eigen::MatrixXd& T);

 private:
  Eigen::LLT<Eigen::MatrixXd> factor_;
  Eigen::MatrixXd gram_, coupling_, transposed_;
};

}  // namespace attsvm
