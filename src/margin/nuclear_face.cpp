#include "margin/nuclear_face.h"

#include <cmath>
#include <numbers>

#include "base/decompositions.h"
#include "margin/tolerances.h"

namespace attsvm {
namespace {

constexpr Index kSteps = 12;
constexpr Index kMostRows = 1000;  // or as many as there are unknowns: more are not met with equality for good
constexpr double kConverged = 1e-13, kDependentRow = 1e-11, kNoProgress = 0.5;
constexpr double kUseful = 1e-10;      // residual that is put up with where rounding allows no better
constexpr double kSmallDemand = 1e-2;  // right-hand sides so far below ‖W‖ that rounding shows

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
  double demand = 1;
  for (Index k = 0; k < m_; ++k) {
    if (rows.rhs(k) > 0) demand = std::min(demand, rows.rhs(k));
  }
  double best = HUGE_VAL;
  int patience = 3;
  for (steps_ = 0; steps_ < kSteps; ++steps_) {
    choose_rows(balance);
    if (active_.size() > std::max(kMostRows, P_ * Q_) || !split()) return false;
    const double now = residual();
    if (now <= kConverged) return demand > kSmallDemand || finish();
    if (!(now <= kNoProgress * best) && --patience == 0) return now <= kUseful && finish();
    best = std::min(best, now);
    if (!newton_step()) return false;
  }
  return false;
}

/// Where rows nearly conflict the multipliers are huge and cancel in A(λ), and M carries that rounding into the rows.
/// So the last W is not read off M: it is that of a last step, which meets the rows, at the rank found.
bool NuclearFace::finish() {
  const Index r = sigma_.size();
  if (!newton_step()) return false;
  ++steps_;
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(W_, Eigen::ComputeThinU | Eigen::ComputeThinV);
  U_ = svd.matrixU().leftCols(r);
  V_ = svd.matrixV().leftCols(r);
  sigma_ = svd.singularValues().head(r);
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
}

/// M = W + A(λ) = U diag(σ) Vᵀ + (U Vᵀ + rest), rest orthogonal to both and of norm at most 1.
bool NuclearFace::split() {
  rows_->weigh(lambda_.data(), A_);
  M_ = W_ + A_;
  gram_.noalias() = M_.transpose() * M_;
  eigen_.compute(gram_);
  if (eigen_.info() != Eigen::Success) return false;
  Index r = 0;
  while (r < Q_ && eigen_.eigenvalues()(Q_ - 1 - r) > 1) ++r;
  if (r == 0) return false;
  V_ = eigen_.eigenvectors().rightCols(r);
  sigma_ = eigen_.eigenvalues().tail(r).cwiseSqrt();
  U_.noalias() = M_ * V_;
  for (Index j = 0; j < r; ++j) U_.col(j) /= sigma_(j);
  sigma_.array() -= 1;
  product_ = U_ * sigma_.asDiagonal();
  low_.noalias() = product_ * V_.transpose();
  rest_ = M_ - low_;
  rest_.noalias() -= U_ * V_.transpose();
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
    const bool in = next < active_.size() && active_[next] == k;
    if (in) ++next;
    worst = std::max(worst, in ? std::abs(slack) : -slack);
    if (in && !rows_->equal(k)) worst = std::max(worst, -lambda_[k] / largest);
  }
  return worst;
}

/// dW = XJT + TJX, upper right, J = [0 dA; dAᵀ 0]: how W on the face answers to a change of A.
void NuclearFace::respond(const Eigen::MatrixXd& dA, Eigen::MatrixXd& dW) {
  const Index N = P_ + Q_;
  coupling_.resize(Q_, P_);
  product_.resize(N, N);
  answer_.resize(N, N);
  multiply_coupled(dA.data(), P_, Q_, T_.data(), coupling_.data(), product_.data());
  multiply(X_.data(), N, N, product_.data(), N, N, answer_.data());
  dW = answer_.topRightCorner(P_, Q_) + answer_.bottomLeftCorner(Q_, P_).transpose();
}

bool NuclearFace::newton_step() {
  const Index N = P_ + Q_, r = sigma_.size(), pairs = r * (r + 1) / 2, size = active_.size();
  // Curvature off the block, [I −restᵀ; −rest I]⁻¹ on the complement, σ_i times; inside it the means (σ_i + σ_j)/2.
  X_.setZero(N, N);
  T_.resize(N, N);
  product_ = U_ * sigma_.asDiagonal();
  X_.topLeftCorner(P_, P_).noalias() = product_ * U_.transpose();
  X_.topRightCorner(P_, Q_) = low_;
  X_.bottomLeftCorner(Q_, P_) = low_.transpose();
  product_ = V_ * sigma_.asDiagonal();
  X_.bottomRightCorner(Q_, Q_).noalias() = product_ * V_.transpose();
  gram_.noalias() = -rest_.transpose() * rest_;
  gram_.diagonal().array() += 1;
  factor_.compute(gram_);
  if (factor_.info() != Eigen::Success) return false;
  inverse_.setIdentity(Q_, Q_);
  factor_.solveInPlace(inverse_);
  product_.noalias() = rest_ * inverse_;
  T_.topRightCorner(P_, Q_) = product_;
  T_.bottomLeftCorner(Q_, P_) = product_.transpose();
  gram_.noalias() = product_ * rest_.transpose();
  gram_.diagonal().array() += 1;
  gram_.noalias() -= 0.5 * U_ * U_.transpose();
  T_.topLeftCorner(P_, P_) = gram_;
  inverse_.noalias() -= 0.5 * V_ * V_.transpose();
  T_.bottomRightCorner(Q_, Q_) = inverse_;

  schur_.choose(*rows_, active_.begin(), size);
  schur_.build(X_, T_, 1, nullptr);
  schur_.factor(kDependentRow);

  // [H Bᵀ; B 0][Δλ; Y] = [b − values(low) + response to the error; sym UᵀEV]: A keeps the block at I.
  respond(error_, step_A_);
  rows_->values(step_A_, x_.data());
  right_.resize(size);
  B_.resize(size, pairs);
  for (Index j = 0; j < size; ++j) {
    const Index k = active_[j];
    right_(j) = rows_->rhs(k) - value_[k] + x_[k];
    a_.noalias() = U_.transpose() * ConstVector(rows_->delta(k), P_);
    c_.noalias() = V_.transpose() * ConstVector(rows_->zeta(rows_->query(k)), Q_);
    for (Index q = 0, t = 0; q < r; ++q) {
      for (Index p = 0; p < q; ++p) B_(j, t++) = (a_(p) * c_(q) + a_(q) * c_(p)) * (std::numbers::sqrt2 / 2);
      B_(j, t++) = a_(q) * c_(q);
    }
  }
  schur_.solve(right_.data());
  solved_ = B_;
  for (Index t = 0; t < pairs; ++t) schur_.solve(solved_.col(t).data());
  small_.noalias() = B_.transpose() * solved_;
  y_.noalias() = B_.transpose() * right_;
  product_.noalias() = U_.transpose() * error_;
  gram_.noalias() = product_ * V_;
  for (Index q = 0, t = 0; q < r; ++q) {
    for (Index p = 0; p < q; ++p) y_(t++) -= (gram_(p, q) + gram_(q, p)) * (std::numbers::sqrt2 / 2);
    y_(t++) -= gram_(q, q);
  }
  factor_.compute(small_);
  if (factor_.info() != Eigen::Success) return false;
  factor_.solveInPlace(y_);
  right_.noalias() -= solved_ * y_;

  std::fill_n(x_.data(), m_, 0.0);
  for (Index j = 0; j < size; ++j) {
    x_[active_[j]] = right_(j);
    lambda_[active_[j]] += right_(j);
  }
  rows_->weigh(x_.data(), step_A_);
  step_A_ -= error_;
  respond(step_A_, W_);
  W_ += low_;
  gram_.resize(r, r);
  for (Index q = 0, t = 0; q < r; ++q) {
    for (Index p = 0; p < q; ++p) gram_(p, q) = gram_(q, p) = y_(t++) * (std::numbers::sqrt2 / 2);
    gram_(q, q) = y_(t++);
  }
  product_.noalias() = U_ * gram_;
  W_.noalias() += product_ * V_.transpose();
  rows_->values(W_, value_.data());
  return W_.allFinite();
}

}  // namespace attsvm
