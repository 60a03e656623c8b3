#include "margin/nuclear/interior_point.h"

#include <algorithm>
#include <cmath>

#include "margin/predictor_corrector.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kStartNorm = 0.7;      // ‖A(λ)‖_F at the start
constexpr double kCentral = 0.3;        // λs/μ of rows that have no multiplier at the start
constexpr double kRoom = 0.1;           // least slack that a row starts with
constexpr double kStay = 0.95;          // fraction of the way to the boundary
constexpr double kNegligible = 1e-24;   // squared singular value, relative
constexpr double kTinyPivot = 1e-14;    // of unit diagonals: a row below it depends on others
constexpr double kSmallestStep = 1e-3;  // where the method ends
constexpr double kShort = 0.2;          // a shorter step is replaced by one to the center,
constexpr double kRecenter = 0.7;       // with this share of μ

}  // namespace

void NuclearInteriorPoint::start(NuclearRows& rows, const Eigen::MatrixXd& W, const double* lambda) {
  rows_ = &rows;
  P_ = rows.left();
  Q_ = rows.right();
  N_ = P_ + Q_;
  m_ = rows.count();
  for (auto* buffer :
       {&lambda_, &slack_, &dlambda_, &dslack_, &affine_dlambda_, &affine_dslack_, &value_, &diagonal_, &goal_})
    buffer->grow(m_);
  schur_.choose(rows, nullptr, m_);
  Index inequalities = 0;
  for (Index k = 0; k < m_; ++k) {
    lambda_[k] = lambda[k];
    if (!rows.equal(k)) ++inequalities;
  }
  barrier_ = static_cast<double>(N_ + inequalities);
  // X = μT is central for S, and its corner μT₁₂ resembles A and so the given W. μ is chosen to make it twice as large
  // as W, and the difference to 2W is added. Rows without a multiplier get the one that is central for their slack.
  rows.values(W, value_.data());
  scale_dual(kStartNorm);
  match(2, W);
  for (Index k = 0; k < m_; ++k) {
    if (!rows.equal(k))
      lambda_[k] = std::max(lambda_[k], kCentral * mu_ / std::max(2 * value_[k] - rows.rhs(k), kRoom));
  }
  scale_dual(kStartNorm);
  match(2, W);
  X_ = mu_ * T_;
  step_to(2 * W);
  rows.values(W_, value_.data());
  for (Index k = 0; k < m_; ++k) {
    slack_[k] = rows.equal(k) ? 0 : std::max(value_[k] - rows.rhs(k), kCentral * std::min(mu_ / lambda_[k], 1.0));
  }
  measure();
}

/// Moves the corner of X to W, and with D = UΣVᵀ the change adds UΣUᵀ and VΣVᵀ to the blocks: X stays positive.
void NuclearInteriorPoint::step_to(const Eigen::MatrixXd& W) {
  product_ = W - X_.topRightCorner(P_, Q_);
  gram_.noalias() = product_.transpose() * product_;
  eigen_.compute(gram_);
  const double least = kNegligible * eigen_.eigenvalues()(Q_ - 1);
  for (Index j = 0; j < Q_; ++j) {
    const double square = eigen_.eigenvalues()(j);
    if (!(square > least)) continue;
    const auto v = eigen_.eigenvectors().col(j);
    along_.noalias() = product_ * v;
    X_.topLeftCorner(P_, P_).noalias() += along_ * (along_.transpose() / std::sqrt(square));
    X_.bottomRightCorner(Q_, Q_).noalias() += v * (v.transpose() * std::sqrt(square));
  }
  W_ = W;
  X_.topRightCorner(P_, Q_) = W;
  X_.bottomLeftCorner(Q_, P_) = W.transpose();
}

/// Scales λ so that ‖A(λ)‖_F is `norm`, and inverts S.
void NuclearInteriorPoint::scale_dual(double norm) {
  rows_->weigh(lambda_.data(), A_);
  const double now = A_.norm(), factor = now > 0 ? norm / now : 1;
  for (Index k = 0; k < m_; ++k) lambda_[k] *= factor;
  A_ *= factor;
  invert_dual();
}

/// Sets μ so that μT₁₂ has `times` the component along W that W itself has.
void NuclearInteriorPoint::match(double times, const Eigen::MatrixXd& W) {
  W_ = T_.topRightCorner(P_, Q_);
  mu_ = std::clamp(times * W.squaredNorm() / W_.cwiseProduct(W).sum(), 0.1, 10.0);
}

/// T = S⁻¹. False: S is not positive definite.
bool NuclearInteriorPoint::invert_dual() {
  if (!inverse_.factor(A_)) return false;
  inverse_.invert(A_, 2, T_);
  return true;
}

void NuclearInteriorPoint::weights(Eigen::MatrixXd& W) const { W = X_.topRightCorner(P_, Q_); }

void NuclearInteriorPoint::measure() {
  double products = 0;
  W_ = X_.topRightCorner(P_, Q_);
  objective_ = 0.5 * X_.trace();
  rows_->values(W_, value_.data());
  bound_ = 0;
  double infeasibility = 0;
  for (Index k = 0; k < m_; ++k) {
    bound_ += rows_->rhs(k) * lambda_[k];
    infeasibility += std::abs(lambda_[k] * (value_[k] - slack_[k] - rows_->rhs(k)));
    products += slack_[k] * lambda_[k];
  }
  mu_ = (objective_ - A_.cwiseProduct(W_).sum() + products) / barrier_;
  gap_ = (mu_ * barrier_ + infeasibility) / std::max(objective_, 1e-300);
}

/// out = ¼(Y J T + T J Y), J = [0 dA; dAᵀ 0]: how X changes with A, or with both.
void NuclearInteriorPoint::couple(const Eigen::MatrixXd& Y, const Eigen::MatrixXd& dA, Eigen::MatrixXd& out) {
  coupling_.resize(Q_, P_);
  product_.resize(N_, N_);
  trial_.resize(N_, N_);
  multiply_coupled(dA.data(), P_, Q_, T_.data(), coupling_.data(), product_.data());
  multiply(Y.data(), N_, N_, product_.data(), N_, N_, trial_.data());
  out = 0.25 * (trial_ + trial_.transpose());
}

/// Newton's step to complementarity `target`; corrected: with the second-order terms of the affine step.
void NuclearInteriorPoint::direction(double target, bool corrected) {
  if (corrected) {
    couple(affine_dX_, affine_dA_, correction_);
  } else {
    correction_.setZero(N_, N_);
  }
  correction_ += target * T_;
  W_ = correction_.topRightCorner(P_, Q_);
  rows_->values(W_, value_.data());
  for (Index k = 0; k < m_; ++k) {
    goal_[k] = rows_->equal(k) ? 0 : (target - (corrected ? affine_dslack_[k] * affine_dlambda_[k] : 0)) / lambda_[k];
    dlambda_[k] = rows_->rhs(k) - value_[k] + goal_[k];
  }
  schur_.solve(dlambda_.data());
  rows_->weigh(dlambda_.data(), dA_);
  couple(X_, dA_, dX_);
  dX_ += correction_ - X_;
  for (Index k = 0; k < m_; ++k) {
    dslack_[k] = rows_->equal(k) ? 0 : goal_[k] - slack_[k] - slack_[k] / lambda_[k] * dlambda_[k];
  }
}

double NuclearInteriorPoint::primal_step(double most) {
  double step = step_to_boundary(0, m_, slack_, dslack_, most, [](Index) { return true; });
  while (step > kSmallestStep) {
    trial_ = X_ + step * dX_;
    factor_.compute(trial_);
    if (factor_.info() == Eigen::Success) break;
    step *= 0.85;
  }
  return step;
}

double NuclearInteriorPoint::dual_step(double most) {
  double step = step_to_boundary(0, m_, lambda_, dlambda_, most, [&](Index k) { return !rows_->equal(k); });
  gram0_.noalias() = A_.transpose() * A_;
  gram1_.noalias() = A_.transpose() * dA_;
  gram2_.noalias() = dA_.transpose() * dA_;
  while (step > kSmallestStep) {
    gram_ = Eigen::MatrixXd::Identity(Q_, Q_) - gram0_ - step * (gram1_ + gram1_.transpose()) - step * step * gram2_;
    factor_.compute(gram_);
    if (factor_.info() == Eigen::Success) break;
    step *= 0.85;
  }
  return step;
}

bool NuclearInteriorPoint::step() {
  for (Index k = 0; k < m_; ++k) diagonal_[k] = rows_->equal(k) ? 0 : slack_[k] / lambda_[k];
  schur_.build(X_, T_, 0.25, diagonal_.data());
  schur_.factor(kTinyPivot);

  direction(0, false);
  const double primal = primal_step(1), dual = dual_step(1);
  double after = complementarity(0, m_, slack_, dslack_, primal, lambda_, dlambda_, dual);
  const double cross =
      (X_.topRightCorner(P_, Q_) + primal * dX_.topRightCorner(P_, Q_)).cwiseProduct(A_ + dual * dA_).sum();
  after += 0.5 * (X_.trace() + primal * dX_.trace()) - cross;
  const double ratio = std::clamp(after / barrier_ / mu_, 1e-3, 1.0);
  const double center = ratio * ratio * (std::min(primal, dual) > 0.9 ? ratio : 1);
  affine_dX_.swap(dX_);
  affine_dA_.swap(dA_);
  affine_dlambda_.swap(dlambda_);
  affine_dslack_.swap(dslack_);

  direction(center * mu_, true);
  double primal_taken = kStay * primal_step(1 / kStay), dual_taken = kStay * dual_step(1 / kStay);
  if (std::min(primal_taken, dual_taken) < kShort) {  // off center: the corrector overshoots, so recenter first
    direction(kRecenter * mu_, false);
    primal_taken = kStay * primal_step(1 / kStay);
    dual_taken = kStay * dual_step(1 / kStay);
  }
  if (!(std::max(primal_taken, dual_taken) > kSmallestStep)) return false;
  X_ += primal_taken * dX_;
  A_ += dual_taken * dA_;
  for (Index k = 0; k < m_; ++k) {
    slack_[k] += primal_taken * dslack_[k];
    lambda_[k] += dual_taken * dlambda_[k];
  }
  if (!invert_dual()) return false;
  measure();
  return std::isfinite(mu_) && mu_ > 0;
}

}  // namespace attsvm::internal
