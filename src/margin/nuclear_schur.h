#pragma once

#include "margin/nuclear_kernels.h"
#include "margin/nuclear_rows.h"

namespace attsvm {

/// The equations of Newton's method for the multipliers of some rows: a sum of Hadamard products of small matrices,
/// factorised by Cholesky. Memory is kept.
class NuclearSchur {
 public:
  /// The rows that the equations are for: numbers 0 … count−1 of `rows`, or a list of them.
  void choose(const NuclearRows& rows, const Index* list, Index count);

  /// M_kl = factor·½⟨a_k, X a_l T + T a_l X⟩ for rows a = δζᵀ read as symmetric matrices of size left + right, and
  /// symmetric X and T of that size; `diagonal` (one number a row, or null) is added.
  void build(const Eigen::MatrixXd& X, const Eigen::MatrixXd& T, double factor, const double* diagonal);
  /// x ← M⁻¹ x. Rows that depend on those before them (to `tiny`, relative to their own diagonal) get 0.
  void factor(double tiny);
  void solve(double* x) const;
  Index size() const { return count_; }

 private:
  const NuclearRows* rows_ = nullptr;
  Index count_ = 0, ld_ = 0, ldg_ = 0;
  bool with_blas_ = false;
  Buffer<Index> query_;
  Buffer<double> delta_, across_, T_, X_, corner_, product_, right_X_, right_T_, x_, t_, work_, G_, backup_, scale_;
  mutable Buffer<double> scaled_;
};

}  // namespace attsvm
