#pragma once

#include <Eigen/Cholesky>

#include "base/decompositions.h"
#include "margin/nuclear/coupled_inverse.h"
#include "margin/nuclear/schur.h"

namespace attsvm::internal {

/// Mehrotra's predictor and corrector with the HKM direction on
///   min ½ tr X  over  X = [W₁ W; Wᵀ W₂] ⪰ 0,  δ_kᵀWζ_k − s_k = b_k,  s ≥ 0,
///   max bᵀλ    over  S = ½[I −A(λ); −A(λ)ᵀ I] ⪰ 0,  λ ≥ 0,
/// whose optimal value is the least nuclear norm. S follows from λ, so the dual side is always feasible. Keeps its
/// memory between calls.
class NuclearInteriorPoint {
 public:
  /// `rows` must outlive the solve. W and λ: a point that is feasible or nearly (the Frobenius optimum), in its units.
  void start(NuclearRows& rows, const Eigen::MatrixXd& W, const double* lambda);
  /// One iteration. False: no more progress.
  bool step();

  double objective() const { return objective_; }  ///< ½ tr X; meaningless while W violates rows
  double bound() const { return bound_; }          ///< bᵀλ, which is always a lower bound
  double gap() const { return gap_; }  ///< complementarity and violated rows together, relative to the objective
  const Eigen::MatrixXd& A() const { return A_; }
  void weights(Eigen::MatrixXd& W) const;  ///< the present W, which may miss rows by a little
  const double* lambda() const { return lambda_.data(); }
  const double* slack() const { return slack_.data(); }

 private:
  bool invert_dual();
  void measure();
  void scale_dual(double norm);
  void step_to(const Eigen::MatrixXd& W);
  void match(double times, const Eigen::MatrixXd& W);
  void couple(const Eigen::MatrixXd& Y, const Eigen::MatrixXd& dA, Eigen::MatrixXd& out);
  void direction(double target, bool corrected);
  double primal_step(double most);
  double dual_step(double most);

  NuclearRows* rows_ = nullptr;
  NuclearSchur schur_;
  Index P_ = 0, Q_ = 0, N_ = 0, m_ = 0;
  double barrier_ = 0;  // its parameter: N plus the inequalities
  Eigen::MatrixXd A_, X_, T_, dA_, dX_, affine_dA_, affine_dX_, coupling_, product_, correction_, trial_, gram_, W_;
  Eigen::MatrixXd gram0_, gram1_, gram2_;
  Eigen::VectorXd along_;
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen_;
  Eigen::LLT<Eigen::MatrixXd> factor_;
  CoupledInverse inverse_;
  Buffer<double> lambda_, slack_, dlambda_, dslack_, affine_dlambda_, affine_dslack_, value_, diagonal_, goal_;
  double objective_ = 0, bound_ = 0, gap_ = 0, mu_ = 0;
};

}  // namespace attsvm::internal
