#pragma once

#include "margin/nuclear/coupled_inverse.h"
#include "margin/nuclear/schur.h"

namespace attsvm::internal {

/// Follows the optimum of  max bᵀλ + ½μ log det(I − AᵀA),  A = A(λ),  λ ≥ 0 off the equalities,  for falling μ.
///
/// For large μ this is the dual of the Frobenius problem, from whose answer it starts; for μ → 0 it is the dual of the
/// nuclear problem. W = μA(I − AᵀA)⁻¹ meets the rows at every optimum, and exceeds the least nuclear norm by
/// at most μ/2 per singular value. λ ≥ 0 is not a part of the barrier: every step solves a small quadratic program by
/// block pivoting, so that only few rows enter its matrix. Keeps its memory between calls.
class NuclearBarrier {
 public:
  /// `rows` must outlive the solve. λ: the multipliers of the Frobenius optimum, up to a factor. False: all zero.
  bool start(NuclearRows& rows, const double* lambda);
  /// A Newton step toward the optimum for half of μ, or for the same μ if the point is still far from its optimum.
  /// False: no progress.
  bool step();

  bool central() const { return central_; }  ///< rows are met closely enough for gap() to be meaningful
  double gap() const { return gap_; }        ///< between W and λ, relative
  double bound() const { return bound_; }    ///< bᵀλ, which is always a lower bound
  void weights(Eigen::MatrixXd& W) const;
  const double* lambda() const { return lambda_.data(); }
  const double* slack() const { return slack_.data(); }

 private:
  void measure();
  void choose_candidates(double target);
  void factor_set(Index size);
  bool pivot();
  void sweep_program();
  void solve_program();
  bool search(double target);

  NuclearRows* rows_ = nullptr;
  NuclearSchur schur_;
  CoupledInverse inverse_;
  Index m_ = 0;
  double mu_ = 0, gap_ = 1, bound_ = 0;
  bool central_ = true;
  Eigen::MatrixXd A_, dA_, trial_, T_, C_;
  IndexList candidates_, set_, next_;
  Buffer<double> lambda_, slack_, value_, move_;           // value_: values of all rows at A(I − AᵀA)⁻¹
  Buffer<double> wanted_, low_, x_, set_x_, product_, L_;  // of the quadratic program: one number per candidate
};

}  // namespace attsvm::internal
