#include "margin/nuclear/face.h"

#include <cmath>

#include "base/decompositions.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kSteps = 12;       // of Newton's method
constexpr Index kMostRows = 1000;  // or the number of unknowns if that is more: no more rows can stay active
constexpr double kConverged = 1e-13, kUseful = 1e-10;  // residual of the answer, and if rounding allows no better
constexpr double kDependentRow = 1e-11;                // pivot of the factorisation below which a row depends on others
constexpr double kNoProgress = 0.5;                    // ratio of residuals from which a step counts as futile
constexpr double kDiverged = 30;                       // ratio of residuals from which it gives up
constexpr double kSmallDemand = 1e-2;                  // right-hand sides so far below ‖W‖ that rounding matters

}  // namespace

bool NuclearFace::solve(NuclearRows& rows, const Eigen::MatrixXd& W, const double* lambda, double balance) {
  rows_ = &rows;
  P_ = rows.left();
  Q_ = rows.right();
  m_ = rows.count();
  W_ = W;
  lambda_.grow(m_);
  value_.grow(m_);
  x_.grow(m_);
  std::copy_n(lambda, m_, lambda_.data());
  rows.values(W_, value_.data());
  at_.holds = false;
  double demand = 1;
  for (Index k = 0; k < m_; ++k) {
    if (rows.rhs(k) > 0) demand = std::min(demand, rows.rhs(k));
  }
  double best = kInfinity, before = kInfinity;
  int patience = 3;
  for (steps_ = 0; steps_ < kSteps; ++steps_) {
    choose_rows(balance);
    if (active_.size() > std::max(kMostRows, P_ * Q_) || !split()) return false;
    const double now = residual();
    if (now <= kConverged) return demand > kSmallDemand || finish();
    if (!(now <= kNoProgress * best) && --patience == 0) return now <= kUseful && finish();
    if (!(now <= kDiverged * best)) return false;
    best = std::min(best, now);
    if (!tangent_serves(before, now) && !linearise()) return false;
    if (!step()) return false;
    before = now;
  }
  return false;
}

/// Where rows nearly conflict, the multipliers are huge and cancel in A(λ), and their rounding is in M. So the final W
/// is not taken from M, but from a last step at the rank found, which meets the rows.
bool NuclearFace::finish() {
  const Index r = sigma_.size();
  if (!linearise() || !step()) return false;
  ++steps_;
  const ThinSvd svd = thin_svd(W_);
  U_ = svd.U.leftCols(r);
  V_ = svd.V.leftCols(r);
  sigma_ = svd.sigma.head(r);
  return true;
}

void NuclearFace::choose_rows(double balance) {
  active_.clear();
  for (Index k = 0; k < m_; ++k) {
    if (rows_->equal(k) || lambda_[k] > balance * (value_[k] - rows_->rhs(k))) {
      active_.push(k);
    } else {
      lambda_[k] = 0;
    }
  }
  twins_.merge(*rows_, value_.data(), active_, lambda_.data());
}

/// M = W + A(λ) = U diag(σ) Vᵀ + (U Vᵀ + rest), rest orthogonal to both and of norm at most 1.
bool NuclearFace::split() {
  rows_->weigh(lambda_.data(), A_);
  M_ = W_ + A_;
  transposed_ = M_.transpose();
  multiply(transposed_, M_, gram_);
  eigen_.compute(gram_);
  if (eigen_.info() != Eigen::Success) return false;
  Index r = 0;
  while (r < Q_ && eigen_.eigenvalues()(Q_ - 1 - r) > 1) ++r;
  if (r == 0) return false;
  V_ = eigen_.eigenvectors().rightCols(r).rowwise().reverse();
  sigma_ = eigen_.eigenvalues().tail(r).reverse().cwiseSqrt();
  multiply(M_, V_, U_);
  for (Index j = 0; j < r; ++j) U_.col(j) /= sigma_(j);
  right_rows_ = V_.transpose();
  product_ = U_ * sigma_.asDiagonal();
  multiply(product_, right_rows_, rest_);
  rest_ = M_ - rest_;
  sigma_.array() -= 1;
  product_ = U_ * sigma_.asDiagonal();
  multiply(product_, right_rows_, low_);
  error_ = W_ - low_;
  return true;
}

/// How far (low_, λ) is from optimal.
double NuclearFace::residual() {
  rows_->values(low_, value_.data());
  double worst = error_.norm(), largest = 0;
  for (Index k = 0; k < m_; ++k) largest = std::max(largest, std::abs(lambda_[k]));
  Index next = 0;
  for (Index k = 0; k < m_; ++k) {
    const double slack = value_[k] - rows_->rhs(k);
    const bool in = active_.meets(k, next);
    worst = std::max(worst, in ? std::abs(slack) : -slack);
    if (in && !rows_->equal(k)) worst = std::max(worst, -lambda_[k] / largest);
  }
  return worst;
}

/// dW = XJT + TJX, upper right, J = [0 dA; dAᵀ 0] and X = [U; V] diag(σ) [U; V]ᵀ: how W on the face changes with
/// A.
void NuclearFace::respond(const Eigen::MatrixXd& dA, Eigen::MatrixXd& dW) {
  const Index N = P_ + Q_, r = at_.sigma.size();
  coupling_.resize(N, r);
  multiply(dA, at_.V, product_);
  coupling_.topRows(P_) = product_;
  transposed_ = dA.transpose();
  multiply(transposed_, at_.U, product_);
  coupling_.bottomRows(Q_) = product_;
  multiply(at_.T, coupling_, answer_);
  for (Index j = 0; j < r; ++j) answer_.col(j) *= at_.sigma(j);
  transposed_ = answer_.bottomRows(Q_).transpose();
  multiply(at_.U, transposed_, dW);
  coupling_ = answer_.topRows(P_);
  multiply(coupling_, at_.right_rows, product_);
  dW += product_;
}

/// A Newton step reduces a residual e to Ce²; a step with the tangent formed at e multiplies later residuals by 2Ce,
/// twice the last reduction. If two such steps suffice, they are cheaper than a new tangent.
bool NuclearFace::tangent_serves(double before, double now) const {
  const double rate = 2 * now / before;
  return at_.holds && now * rate * rate <= kConverged && at_.sigma.size() == sigma_.size() && at_.active == active_;
}

bool NuclearFace::linearise() {
  const Index r = sigma_.size();
  at_.holds = false;
  if (r * (r + 1) / 2 > active_.size()) return false;  // the rows cannot determine the block
  // Curvature outside the block: σ_i times [I −rest; −restᵀ I]⁻¹ on the complement; inside it: the means (σ_i + σ_j)/2.
  if (!inverse_.factor(rest_)) return false;
  at_.U = U_;
  at_.V = V_;
  at_.right_rows = right_rows_;
  at_.sigma = sigma_;
  at_.active = active_;
  inverse_.invert(rest_, 1, at_.T);
  transposed_ = U_.transpose();
  multiply(U_, transposed_, product_);
  at_.T.topLeftCorner(P_, P_) -= 0.5 * product_;
  multiply(V_, right_rows_, product_);
  at_.T.bottomRightCorner(Q_, Q_) -= 0.5 * product_;
  schur_.choose(*rows_, active_.begin(), active_.size());
  schur_.build_on_face(U_, V_, sigma_, at_.T);
  at_.holds = schur_.factor_on_face(kDependentRow);
  return at_.holds;
}

/// Solves the equations of the tangent for the present errors.
bool NuclearFace::step() {
  // M Δλ + (Y on the rows) = b − values(low) + response to the error; A keeps the block at I.
  respond(error_, step_A_);
  rows_->values(step_A_, x_.data());
  right_.resize(active_.size());
  for (Index j = 0; j < active_.size(); ++j) {
    const Index k = active_[j];
    right_(j) = rows_->rhs(k) - value_[k] + x_[k];
  }
  multiply(error_, at_.V, product_);
  block_.noalias() = at_.U.transpose() * product_;
  schur_.solve_on_face(right_.data(), block_);

  std::fill_n(x_.data(), m_, 0.0);
  for (Index j = 0; j < active_.size(); ++j) {
    x_[active_[j]] = right_(j);
    lambda_[active_[j]] += right_(j);
  }
  rows_->weigh(x_.data(), step_A_);
  step_A_ -= error_;
  respond(step_A_, W_);
  W_ += low_;
  multiply(at_.U, block_, product_);
  multiply(product_, at_.right_rows, answer_);
  W_ += answer_;
  rows_->values(W_, value_.data());
  return W_.allFinite();
}

}  // namespace attsvm::internal
