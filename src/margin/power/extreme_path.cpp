#include "margin/power/extreme_path.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "margin/predictor_corrector.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kRoom = 1.2;             // by which W is enlarged at the start, and the ball again
constexpr double kInside = 0.9;           // of the ball, where λ is scaled to if A is outside it
constexpr double kLeast = 0.1;            // least slack at the start, relative to the mean |b|
constexpr double kStay = 0.95;            // fraction of the way to the boundary
constexpr double kShorter = 0.85;         // factor by which a step is shortened until it is inside the spectral ball
constexpr double kSmallestStep = 1e-7;    // where the method ends
constexpr double kSmallestInBall = 1e-3;  // the same for steps in the spectral ball, which are found by trying
constexpr double kShort = 0.2;            // a shorter step is replaced by one to the center,
constexpr double kRecenter = 0.7;         // with this share of μ
constexpr double kSlow = 0.4;             // shorter steps show that y is too far from the frame of x
constexpr double kOff = 2;                // and so does a gap larger than this many times what p and q say
constexpr double kTangentCenter = 0.5;    // share of μ that a step on the tangent aims at,
constexpr double kCentral = 0.5;          // where it starts at most this far from the path
constexpr double kLost = 1;               // farther than this, μ grows to what the gap says

/// The positive root of p (p − y) = c², and so p − y > 0.
template <class Real>
Real positive_part(Real y, Real c) {
  const Real root = std::sqrt(y * y + 4 * c * c);
  return y >= 0 ? (y + root) / 2 : 2 * c * c / (root - y);
}

/// The largest step up to `most` that keeps x + step·dx ≥ 0, for x > 0. Without branches, so it takes vector
/// instructions.
template <class X, class DX, class Real>
Real step_inside(const X& x, const DX& dx, Real most) {
  const Real steepest = (dx / x).minCoeff();
  return steepest < 0 ? std::min(most, -1 / steepest) : most;
}

}  // namespace

template <class Real>
void ExtremePath<Real>::load(const PowerRows<Real>& rows, const Norm& norm, const RowMatrix& W,
                             const Eigen::VectorXd& dual) {
  of_weights_ = norm.power == kInfinity;
  family_ = norm.family;
  tangent_ = false;
  shape(rows);
  rows.weights_in(W, w_);
  rows.duals_in(dual, lambda_);
  w_ *= kRoom;
  const Vector start_values = frame_.values_of(w_);
  radius_ = of_weights_ ? kRoom * start_values.cwiseAbs().maxCoeff() : 1;
  rows.products().weigh(lambda_, a_);
  const Real size = of_weights_ ? frame_.values_of(a_).cwiseAbs().sum() : a_.cwiseAbs().maxCoeff();
  if (size > 0) lambda_ /= size;
  const Real objective = of_weights_ ? radius_ : start_values.cwiseAbs().sum();
  mu_ = std::max(objective - rows.b().dot(lambda_), objective / 10) / 2 / count_;
  rows.products().values(w_, value_);
  slack_.setZero(m_);
  const Real least = kLeast * rows.b().cwiseAbs().mean();
  for (Index k = 0; k < m_; ++k) {
    if (rows.equal(k)) continue;
    slack_(k) = std::max(value_(k) - rows.b()(k), least);
    lambda_(k) = std::max(lambda_(k), mu_ / slack_(k));
  }
  rows.products().weigh(lambda_, a_);
  if (!of_weights_) {
    const Real reach = a_.cwiseAbs().maxCoeff();
    if (reach > kInside) lambda_ *= kInside / reach, a_ *= kInside / reach;
  }
  frame_.take(x());
  for (auto* vector : {&p_, &q_}) vector->resize(values_);
  if (frame_.entrywise()) {
    for (Index i = 0; i < values_; ++i) {
      p_(i) = positive_part(y()(i), mu_ / radius_);
      q_(i) = positive_part(-y()(i), mu_ / radius_);
    }
  }
  measure();
}

template <class Real>
void ExtremePath<Real>::shape(const PowerRows<Real>& rows) {
  rows_ = &rows;
  m_ = rows.count();
  frame_.shape(family_, rows.left(), rows.right());
  values_ = frame_.value_count();
  count_ = static_cast<Real>(rows.inequalities() + 2 * values_ + frame_.spare());
}

template <class Real>
void ExtremePath<Real>::widen(const PowerRows<Real>& rows, const RowMatrix& W, const Eigen::VectorXd& dual,
                              const Eigen::VectorXd& slack) {
  shape(rows);
  rows.weights_in(W, w_);
  rows.duals_in(dual, lambda_);
  rows.duals_in(slack, slack_);
  rows.products().values(w_, value_);
  const Real least = kLeast * rows.b().cwiseAbs().mean();
  for (Index k = 0; k < m_; ++k) {
    if (rows.equal(k) || slack_(k) > 0) continue;
    slack_(k) = std::max(value_(k) - rows.b()(k), least);
    lambda_(k) = mu_ / slack_(k);
  }
  if (!frame_.entrywise()) {
    for (auto* vector : {&p_, &q_}) vector->resize(values_);
  }
  measure();
}

/// Sets p and q of the singular values.
template <class Real>
void ExtremePath<Real>::split() {
  if (frame_.entrywise()) return;
  frame_.into(y(), other_);
  for (Index i = 0; i < values_; ++i) {
    const Real along = other_(frame_.diagonal(i)), low = mu_ / low_(i), high = mu_ / high_(i);
    p_(i) = tangent_ || along < 0 ? low : along + high;
    q_(i) = tangent_ || along >= 0 ? high : low - along;
  }
}

template <class Real>
void ExtremePath<Real>::measure() {
  rows_->products().values(w_, value_);
  rows_->products().weigh(lambda_, a_);
  frame_.take(x());
  low_ = radius_ - frame_.values().array();
  high_ = radius_ + frame_.values().array();
  split();
  const Real spare = static_cast<Real>(frame_.spare()) * mu_;
  const Real products = lambda_.dot(slack_) + p_.dot(low_) + q_.dot(high_) + spare;
  Real violation = 0;
  for (Index k = 0; k < m_; ++k) violation += std::abs(lambda_(k) * (value_(k) - slack_(k) - rows_->b()(k)));
  if (!tangent_) mu_ = products / count_;
  // For singular values p and q leave out what y has off the diagonal, but the bound does not.
  bound_ = lower_bound();
  const Real distance = frame_.entrywise() ? products : std::abs(objective() - bound_);
  gap_ = (distance + violation) / objective();
}

/// Violated rows count by their multipliers in gap_, and these may be small.
template <class Real>
double ExtremePath<Real>::gap() const {
  Real missing = 0;
  for (Index k = 0; k < m_; ++k) {
    const Real b = rows_->b()(k);
    if (!rows_->equal(k)) missing = std::max(missing, (b - value_(k)) / (b > 0 ? b : 1));
  }
  return static_cast<double>(gap_ + missing);
}

template <class Real>
Real ExtremePath<Real>::objective() const {
  return of_weights_ ? radius_ : w_.cwiseAbs().sum();
}

template <class Real>
Real ExtremePath<Real>::lower_bound() const {
  Real size = 0;
  if (!of_weights_) {
    size = a_.cwiseAbs().maxCoeff();
  } else if (frame_.entrywise()) {
    size = a_.cwiseAbs().sum();
  } else {
    size = frame_.values_of(a_).sum();
  }
  return size > 0 ? rows_->b().dot(lambda_) / size : 0;
}

template <class Real>
Real ExtremePath<Real>::ratio() const {
  const Real widest = std::max(slack_.maxCoeff(), rows_->b().maxCoeff());  // every row may be active
  return widest > 0 ? lambda_.maxCoeff() / widest : 1;
}

/// Newton's equations at the present point. False: they cannot be solved.
template <class Real>
bool ExtremePath<Real>::linearise() {
  steep_low_ = p_.cwiseQuotient(low_);
  steep_high_ = q_.cwiseQuotient(high_);
  tilt_ = steep_low_ - steep_high_;
  flexible_.resize(frame_.size());
  for (Index i = 0; i < values_; ++i) flexible_(frame_.diagonal(i)) = steep_low_(i) + steep_high_(i);
  if (!frame_.entrywise()) {
    const Vector low = steep_low_.cwiseSqrt(), high = steep_high_.cwiseSqrt();
    const Real spare = std::sqrt(mu_) / radius_;
    frame_.for_each_off_diagonal(
        [&](Index c, Index i, Index j, int sign) {
          flexible_(c) = sign > 0 ? low(i) * low(j) + high(i) * high(j) : low(i) * high(j) + high(i) * low(j);
        },
        [&](Index c, Index j) { flexible_(c) = spare * (low(j) + high(j)); });
  }
  const Real steepness =
      steep_low_.sum() + steep_high_.sum() + static_cast<Real>(frame_.spare()) * mu_ / radius_ / radius_;
  if (of_weights_) flexible_ = flexible_.cwiseInverse();
  damping_.resize(m_);
  for (Index k = 0; k < m_; ++k) damping_(k) = rows_->equal(k) ? 0 : slack_(k) / lambda_(k);
  if (!schur_.form(*rows_, frame_, flexible_, damping_)) return false;
  if (!of_weights_) return true;
  border_.setZero(frame_.size());
  for (Index i = 0; i < values_; ++i) border_(frame_.diagonal(i)) = flexible_(frame_.diagonal(i)) * tilt_(i);
  frame_.out_of(border_, border_weights_);
  rows_->products().values(border_weights_, border_reply_);
  border_reply_ = -border_reply_;
  schur_.solve(border_reply_);
  rows_->products().weigh(border_reply_, right_);
  frame_.into(right_, coordinates_);
  coordinates_ = coordinates_.cwiseProduct(flexible_) + border_;
  border_slope_ = -steepness;
  for (Index i = 0; i < values_; ++i) border_slope_ += tilt_(i) * coordinates_(frame_.diagonal(i));
  frame_.out_of(coordinates_, border_weights_);
  return true;
}

/// Newton's step to complementarity `target`, with the second-order terms of the affine step if that is given.
template <class Real>
void ExtremePath<Real>::find(Real target, const Direction* affine, Direction& way) {
  if (affine != nullptr) {
    target_p_ = (target - affine->p.array() * (affine->radius - affine->x.array())) / low_.array();
    target_q_ = (target - affine->q.array() * (affine->radius + affine->x.array())) / high_.array();
  } else {
    target_p_ = target / low_.array();
    target_q_ = target / high_.array();
  }
  frame_.into(y(), missing_);
  for (Index i = 0; i < values_; ++i) missing_(frame_.diagonal(i)) -= target_p_(i) - target_q_(i);
  if (of_weights_) {
    missing_.array() *= flexible_.array();
  } else {
    missing_ = -missing_;
  }
  frame_.out_of(missing_, way.w);
  way.slack.setZero(m_);
  for (Index k = 0; k < m_; ++k) {
    if (rows_->equal(k)) continue;
    way.slack(k) = (target - (affine != nullptr ? affine->slack(k) * affine->lambda(k) : 0)) / lambda_(k) - slack_(k);
  }
  rows_->products().values(way.w, right_);
  way.lambda = rows_->b() + slack_ + way.slack - value_ - right_;
  schur_.solve(way.lambda);
  rows_->products().weigh(way.lambda, way.a);
  frame_.into(way.a, coordinates_);
  coordinates_ = coordinates_.cwiseProduct(flexible_) + missing_;
  way.radius = 0;
  if (of_weights_) {
    Real rest = 1 - target_p_.sum() - target_q_.sum() - static_cast<Real>(frame_.spare()) * target / radius_;
    for (Index i = 0; i < values_; ++i) rest -= tilt_(i) * coordinates_(frame_.diagonal(i));
    way.radius = rest / border_slope_;
    way.lambda += way.radius * border_reply_;
  }
  frame_.out_of(coordinates_, way.w);
  if (of_weights_) way.w += way.radius * border_weights_;
  way.slack -= damping_.cwiseProduct(way.lambda);
  frame_.into(of_weights_ ? way.w : way.a, coordinates_);
  way.x.resize(values_);
  for (Index i = 0; i < values_; ++i) way.x(i) = coordinates_(frame_.diagonal(i));
  way.p = target_p_.array() - p_.array() - steep_low_.array() * (way.radius - way.x.array());
  way.q = target_q_.array() - q_.array() - steep_high_.array() * (way.radius + way.x.array());
}

template <class Real>
Real ExtremePath<Real>::ball_step(const Direction& way, Real most) {
  if (frame_.entrywise()) {
    if (!(low_.minCoeff() > 0 && high_.minCoeff() > 0)) return 0;  // rounding has left the ball
    most = step_inside(low_.array(), way.radius - way.x.array(), most);
    return step_inside(high_.array(), way.radius + way.x.array(), most);
  }
  using Columns = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const Eigen::Map<const Matrix> X(x().data(), rows_->left(), rows_->right());
  const Eigen::Map<const Matrix> dX((of_weights_ ? way.w : way.a).data(), rows_->left(), rows_->right());
  const Columns gram = X.transpose() * X, mixed = X.transpose() * dX, last = dX.transpose() * dX;
  Columns inside;
  const auto fits = [&](Real step) {
    const Real radius = radius_ + step * way.radius;
    if (!(radius > 0)) return false;
    inside = -(gram + step * (mixed + mixed.transpose()) + step * step * last);
    inside.diagonal().array() += radius * radius;
    return Eigen::LLT<Columns>(inside).info() == Eigen::Success;
  };
  while (most > kSmallestInBall && !fits(most)) most *= kShorter;
  return most;
}

template <class Real>
Real ExtremePath<Real>::multiplier_step(const Direction& way, Real most) const {
  if (!frame_.entrywise()) return most;
  most = step_inside(p_.array(), way.p.array(), most);
  return step_inside(q_.array(), way.q.array(), most);
}

template <class Real>
Real ExtremePath<Real>::primal_step(const Direction& way, Real most) {
  most = step_to_boundary(0, m_, slack_, way.slack, most, [&](Index k) { return !rows_->equal(k); });
  return of_weights_ ? ball_step(way, most) : multiplier_step(way, most);
}

template <class Real>
Real ExtremePath<Real>::dual_step(const Direction& way, Real most) {
  most = step_to_boundary(0, m_, lambda_, way.lambda, most, [&](Index k) { return !rows_->equal(k); });
  return of_weights_ ? multiplier_step(way, most) : ball_step(way, most);
}

template <class Real>
Real ExtremePath<Real>::mean_product(const Direction& way, Real primal, Real dual) const {
  const Real ball = of_weights_ ? primal : dual, multipliers = of_weights_ ? dual : primal;
  Real sum = complementarity(0, m_, slack_, way.slack, primal, lambda_, way.lambda, dual);
  sum += (p_ + multipliers * way.p).dot((low_.array() + ball * (way.radius - way.x.array())).matrix());
  sum += (q_ + multipliers * way.q).dot((high_.array() + ball * (way.radius + way.x.array())).matrix());
  return sum / count_;
}

template <class Real>
void ExtremePath<Real>::take(const Direction& way, Real primal, Real dual) {
  const Real multipliers = of_weights_ ? dual : primal;
  w_ += primal * way.w;
  slack_ += primal * way.slack;
  lambda_ += dual * way.lambda;
  radius_ += primal * way.radius;
  if (frame_.entrywise()) {
    p_ += multipliers * way.p;
    q_ += multipliers * way.q;
    if (!of_weights_) w_ = p_ - q_;
  }
}

template <class Real>
bool ExtremePath<Real>::step() {
  if (!linearise()) return false;
  Real target = 0;
  if (tangent_) {
    const Real distance = distance_from_path();
    if (distance > kLost) mu_ = std::max(mu_, gap_ * objective() / count_);  // Newton would not get back from here
    target = (distance < kCentral ? kTangentCenter : 1) * mu_;
    find(target, nullptr, way_);
  } else {
    find(0, nullptr, affine_);
    const Real primal = primal_step(affine_, 1), dual = dual_step(affine_, 1);
    const Real ratio = std::clamp(mean_product(affine_, primal, dual) / mu_, Real(1e-3), Real(1));
    target = ratio * ratio * (std::min(primal, dual) > 0.9 ? ratio : 1) * mu_;
    find(target, &affine_, way_);
  }
  Real primal_taken = kStay * primal_step(way_, 1 / kStay), dual_taken = kStay * dual_step(way_, 1 / kStay);
  if (std::min(primal_taken, dual_taken) < kShort) {  // off center: the corrector overshoots, so recenter first
    target = (tangent_ ? 1 : kRecenter) * mu_;
    find(target, nullptr, way_);
    primal_taken = kStay * primal_step(way_, 1 / kStay);
    dual_taken = kStay * dual_step(way_, 1 / kStay);
  }
  const Real least = std::min(primal_taken, dual_taken);
  if (!(std::max(primal_taken, dual_taken) > kSmallestStep)) return false;
  take(way_, primal_taken, dual_taken);
  if (!frame_.entrywise()) {
    mu_ += least * (target - mu_);
    tangent_ = tangent_ || least < kSlow;
  }
  measure();
  if (!frame_.entrywise() && gap_ * objective() > kOff * mu_ * count_) tangent_ = true;
  return std::isfinite(gap_) && mu_ > 0 && radius_ > 0;
}

/// How far y is from the curve that x has to follow on the path, in the metric of Newton's method.
template <class Real>
Real ExtremePath<Real>::distance_from_path() {
  frame_.into(y(), coordinates_);
  for (Index i = 0; i < values_; ++i) coordinates_(frame_.diagonal(i)) -= mu_ / low_(i) - mu_ / high_(i);
  return std::sqrt(coordinates_.cwiseAbs2().dot(flexible_) / mu_);
}

template class ExtremePath<double>;
template class ExtremePath<long double>;

}  // namespace attsvm::internal
