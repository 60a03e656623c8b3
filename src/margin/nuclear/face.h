#pragma once

#include "base/decompositions.h"
#include "margin/nuclear/coupled_inverse.h"
#include "margin/nuclear/schur.h"
#include "margin/nuclear/twin_rows.h"

namespace attsvm::internal {

/// Newton's method on the face of a nuclear-norm optimum: matrices of one rank, some rows met with equality. Both are
/// guessed again at every step from M = W + A(λ), as the singular values above 1 and the rows whose multiplier
/// outweighs their slack; near a unique, strictly complementary optimum they stop changing and the steps converge
/// quadratically. Keeps its memory between calls.
class NuclearFace {
 public:
  /// From W and λ near the optimum, in the units of `rows`. A row counts as active where λ_k > balance·(slack of k).
  /// False: did not converge; the results must not be read.
  bool solve(NuclearRows& rows, const Eigen::MatrixXd& W, const double* lambda, double balance);

  // W = U diag(sigma) Vᵀ
  const Eigen::MatrixXd& U() const { return U_; }
  const Eigen::MatrixXd& V() const { return V_; }
  const Eigen::VectorXd& sigma() const { return sigma_; }
  const double* lambda() const { return lambda_.data(); }
  Index steps() const { return steps_; }

 private:
  void choose_rows(double balance);
  bool split();
  double residual();
  bool finish();
  /// The point at which Newton's equations were linearised; near the optimum later steps use them again.
  struct Tangent {
    Eigen::MatrixXd U, V, right_rows, T;  // right_rows: Vᵀ
    Eigen::VectorXd sigma;
    IndexList active;
    bool holds = false;
  };

  bool linearise();
  bool tangent_serves(double before, double now) const;
  bool step();
  void respond(const Eigen::MatrixXd& dA, Eigen::MatrixXd& dW);

  NuclearRows* rows_ = nullptr;
  NuclearSchur schur_;
  Tangent at_;
  Index P_ = 0, Q_ = 0, m_ = 0, steps_ = 0;
  IndexList active_;
  TwinRows twins_;
  Buffer<double> lambda_, value_, x_;
  Eigen::MatrixXd W_, A_, M_, gram_, U_, V_, low_, rest_, error_;  // low_: M's part above 1; rest_: A beyond U Vᵀ
  Eigen::MatrixXd right_rows_, coupling_, product_, transposed_, answer_, block_, step_A_;
  Eigen::VectorXd sigma_, right_;
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen_;
  CoupledInverse inverse_;
};

}  // namespace attsvm::internal
