#pragma once

#include "margin/coupled_inverse.h"
#include "margin/nuclear_schur.h"

namespace attsvm {

/// Follows the optimum of  max bᵀλ + ½μ log det(I − AᵀA),  A = A(λ),  λ ≥ 0 off the equalities,  for falling μ.
///
/// Where μ is large this is the dual of the Frobenius problem, whose answer it starts from; where μ vanishes it is the
/// dual of the nuclear one. W = μA(I − AᵀA)⁻¹ meets the rows at every optimum, and misses the least nuclear norm by
/// μ/2 a singular value at most. λ ≥ 0 is not a part of the barrier: every step solves a small quadratic program by
/// block pivoting, so that only rows that matter enter its matrix. Memory is kept.
class NuclearBarrier {
 public:
  /// `rows` must outlive the solve. λ: the multipliers of the Frobenius optimum, up to a factor. False: all zero.
  bool start(NuclearRows& rows, const double* lambda);
  /// Newton's step toward the optimum of half the μ (of the same μ where the point is still far from its own).
  /// False: no progress.
  bool step();

  bool central() const { return central_; }  ///< rows are met closely enough to believe gap()
  double gap() const { return gap_; }        ///< between W and λ, relative
  double bound() const { return bound_; }    ///< bᵀλ, a lower bound always
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
  Buffer<double> lambda_, slack_, value_, move_;           // value_: of A(I − AᵀA)⁻¹, of all rows
  Buffer<double> wanted_, low_, x_, set_x_, product_, L_;  // of the quadratic program, one number a candidate
};

}  // namespace attsvm
