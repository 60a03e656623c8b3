#pragma once

#include <Eigen/Cholesky>

#include "base/kernels/nuclear.h"
#include "margin/nuclear/rows.h"

namespace attsvm::internal {

/// The matrix of Newton's equations for the multipliers of some rows: a sum of Hadamard products of small matrices,
/// factorised by Cholesky. Keeps its memory between calls.
class NuclearSchur {
 public:
  static constexpr Index kBlasRows = 160;  ///< rows from which OpenBLAS is faster than our own loops

  /// The rows that the equations are for: numbers 0 … count−1 of `rows`, or a list of them.
  void choose(const NuclearRows& rows, const Index* list, Index count);

  /// M_kl = factor·½⟨a_k, X a_l T + T a_l X⟩ for rows a = δζᵀ read as symmetric matrices of size left + right, and
  /// symmetric X and T of that size; `diagonal` (one number per row, or null) is added.
  void build(const Eigen::MatrixXd& X, const Eigen::MatrixXd& T, double factor, const double* diagonal);
  /// x ← M⁻¹ x. Rows that depend on those before them (to `tiny`, relative to their own diagonal) get 0.
  void factor(double tiny);
  void solve(double* x) const;

  /// The same matrix for X = [U; V] diag(σ) [U; V]ᵀ and factor 1, bordered by the equations that fix the symmetric part
  /// of UᵀA(x)V.
  void build_on_face(const Eigen::MatrixXd& U, const Eigen::MatrixXd& V, const Eigen::VectorXd& sigma,
                     const Eigen::MatrixXd& T);
  /// False: its solution is not determined.
  bool factor_on_face(double tiny);
  /// Solves M x + (Uᵀa_kV·Y)_k = x for x and symmetric Y, where UᵀA(x)V has the symmetric part of Y as it was.
  void solve_on_face(double* x, Eigen::MatrixXd& Y);

  // For users that factorise parts of it: M_kl scale(k) scale(l), which has diagonal one, column by column.
  void mirror();  ///< fills the upper triangle too
  const double* matrix() const { return G_.data(); }
  Index ld() const { return ldg_; }
  double scale(Index k) const { return scale_[k]; }

 private:
  void size_matrix(Index border);
  void see_through(const Eigen::MatrixXd& M, double* seen, double* coupled, double* right);
  void spread(double* right);
  void form(double factor, const double* low, Index rank);
  void scale_matrix(const double* diagonal);
  void take_border();
  bool factor_by_blas();
  void solve_scaled(double* x) const;

  const NuclearRows* rows_ = nullptr;
  Index count_ = 0, ld_ = 0, ldg_ = 0;
  bool with_blas_ = false;
  Buffer<Index> query_;
  Buffer<double> delta_, across_, T_, X_, corner_, product_, right_X_, right_T_, x_, t_, work_, G_, backup_, scale_;
  Buffer<double> low_;
  Eigen::MatrixXd left_, right_, border_, half_solved_, squares_, small_;  // half_solved_: L⁻¹ of the border
  Eigen::VectorXd column_, correction_, y_;
  Eigen::LLT<Eigen::MatrixXd> small_factor_;
  mutable Buffer<double> scaled_;
};

}  // namespace attsvm::internal
