#include "margin/power/path.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"
#include "margin/predictor_corrector.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr double kSteep = 8;        // larger powers of w would overflow or vanish unless ‖w‖ is close to one
constexpr Index kIterations = 300;  // nine to thirteen are the mean over nasty tasks
constexpr double kGoal = 1e-13;     // relative gap that is as small as rounding allows
constexpr int kPatience = 20;       // iterations that may pass before the gap falls by the factor kProgress
constexpr double kProgress = 0.9;
constexpr double kStay = 0.98, kSmallestStep = 1e-8;    // share of the way to the boundary; shortest useful step
constexpr double kShort = 0.1;                          // after a shorter step the next one goes back to the center
constexpr double kOffCenter = 10;                       // largest ratio of λs to its mean after such a step
constexpr double kSmoothing = 0.1, kSmoothest = 1e-16;  // ε as a share of λs, and its least value
constexpr double kStarved = 1e-2, kFeed = 10;    // least λs relative to the gap from the curve; factor of its growth
constexpr double kOvershoot = 0.3;               // slope of the merit function after a step, relative to that before
constexpr double kShorter = 0.6, kLonger = 0.8;  // range of the factor for a step that overshoots
constexpr double kEasy = 0.1;                    // factor of ε per step if no row is an inequality
constexpr double kFree = 0.1;                    // initial slack of rows that have neither slack nor multiplier
constexpr int kRefinements = 10;                 // refinement steps per linear system

template <class Real>
Real absolute_power(Real x, Real exponent) {
  return x == 0 ? Real{0} : std::pow(std::abs(x), exponent);
}

template <class Real>
Real power_sum(const Eigen::Matrix<Real, Eigen::Dynamic, 1>& x, Real exponent) {
  Real sum = 0;
  for (Index j = 0; j < x.size(); ++j) sum += absolute_power(x(j), exponent);
  return sum;
}

}  // namespace

template <class Real>
void PowerPath<Real>::load(const MarginProblem& problem, const Norm& norm, const RowMatrix& W,
                           const Eigen::VectorXd& dual, const IndexList* rows, double centrality) {
  p_ = norm.power;
  q_ = p_ / (p_ - 1);
  primal_ = p_ >= 2;
  r_ = primal_ ? p_ : q_;
  steep_ = p_ > static_cast<Real>(kSteep);
  rows_.load(problem, norm.family, static_cast<Real>(steep_ ? norm.of(W) : Norm::largest().of(W)), rows);
  m_ = rows_.count();
  unknowns_ = rows_.unknowns();
  inequalities_ = rows_.inequalities();
  frame_.shape(norm.family, rows_.left(), rows_.right());
  start(W, dual, static_cast<Real>(centrality));
}

/// The multiple of λ at which bᵀλ − ‖A(λ)‖_q^q/q is largest.
template <class Real>
Real PowerPath<Real>::best_dual_scale() {
  rows_.products().weigh(lambda_, a_);
  const Real total = rows_.b().dot(lambda_), norm = std::pow(power_sum(frame_.values_of(a_), q_), 1 / q_);
  return total > 0 && norm > 0 ? std::pow(total / norm, 1 / (q_ - 1)) / norm : Real{0};
}

/// Starts at a multiple of W that leaves every inequality some slack but hardly changes the objective. Rows without a
/// multiplier get the one that is central for their slack; rows without slack get the slack that is central for their
/// multiplier.
template <class Real>
void PowerPath<Real>::start(const RowMatrix& W, const Eigen::VectorXd& dual, Real centrality) {
  rows_.weights_in(W, w_);
  w_ *= steep_ ? 1 + 1 / p_ : Real(1.5);
  rows_.duals_in(dual, lambda_);
  lambda_ *= best_dual_scale();
  rows_.products().values(w_, value_);
  slack_.setZero(m_);
  const Real total = power_sum(frame_.values_of(w_), p_);
  const Real mean = centrality * total / static_cast<Real>(std::max<Index>(inequalities_, 1));
  for (Index k = 0; k < m_; ++k) {
    if (rows_.equal(k)) continue;
    const Real free = static_cast<Real>(kFree);
    slack_(k) = std::max(value_(k) - rows_.b()(k), lambda_(k) * free > mean ? mean / lambda_(k) : free);
    lambda_(k) = std::max(lambda_(k), mean / slack_(k));
  }
  // If A(λ) is too large, its high powers would take many steps to come down.
  if (const Real scale = best_dual_scale(); !primal_ && scale > 0 && scale < 1) lambda_ *= scale;
  rows_.products().weigh(lambda_, a_);
  smoothing_ = static_cast<Real>(kSmoothing) * mean;
  last_step_ = 1;
  best_w_ = w_;
  best_lambda_ = lambda_;
  best_gap_ = kInfinity;
  iterations_ = 0;
  for (auto* vector : {&dlambda_, &dslack_}) vector->setZero(m_);
  for (auto* vector : {&power_, &ratio_, &slope_}) vector->resize(frame_.value_count());
  for (auto* vector : {&flexible_, &missing_}) vector->resize(unknowns_);
  trace(true);
}

/// Computes the smoothed curve at x; `moved`: x has changed, not only ε.
template <class Real>
void PowerPath<Real>::trace(bool moved) {
  if (moved) frame_.take(primal_ ? w_ : a_);
  const Vector& x = frame_.values();
  const Real exponent = (r_ - 2) / r_;
  for (Index j = 0; j < x.size(); ++j) {
    if (moved) power_(j) = absolute_power(x(j), r_);
    const Real sum = power_(j) + smoothing_;
    ratio_(j) = sum == power_(j) ? sum / x(j) / x(j) : std::pow(sum, exponent);
    slope_(j) = ratio_(j) * ((r_ - 1) * power_(j) + smoothing_) / sum;
  }
  frame_.compose(x.cwiseProduct(ratio_), curve_);
}

/// If y is far beyond the curve at x, uses the chord to the curve at y, because the tangent at x would overshoot.
template <class Real>
void PowerPath<Real>::linearize() {
  const Vector& x = frame_.values();
  frame_.into(primal_ ? a_ : w_, gap_to_curve_);
  for (Index i = 0; i < x.size(); ++i) {
    const Index at = frame_.diagonal(i);
    const Real curve = x(i) * ratio_(i), y = gap_to_curve_(at), off = y - curve;
    Real slope = slope_(i);
    if (std::abs(y) > 2 * std::abs(curve)) {
      const Real there = std::copysign(std::pow(std::abs(y), 1 / (r_ - 1)), y);
      slope = std::max(slope, off / (there - x(i)));
    }
    gap_to_curve_(at) = off;
    flexible_(at) = slope;
  }
  linearize_off_diagonal(x);
  for (Index c = 0; c < unknowns_; ++c) {
    missing_(c) = primal_ ? gap_to_curve_(c) / flexible_(c) : -gap_to_curve_(c);
    if (primal_) flexible_(c) = 1 / flexible_(c);
  }
  if (frame_.entrywise()) return;
  coordinates_ = missing_;
  frame_.out_of(coordinates_, missing_);
}

/// Off the diagonal the derivative of a function of the singular values is a divided difference of the function, of the
/// values themselves for the symmetric part and of one value and the negative of the other for the antisymmetric part.
template <class Real>
void PowerPath<Real>::linearize_off_diagonal(const Vector& x) {
  constexpr Real kClose = Real(1e-6);  // relative difference below which the mean of the slopes is as accurate
  frame_.for_each_off_diagonal(
      [&](Index c, Index i, Index j, int sign) {
        const Real between = x(i) - sign * x(j);
        const Real mean = sign > 0 ? (slope_(i) + slope_(j)) / 2 : (ratio_(i) + ratio_(j)) / 2;
        flexible_(c) =
            std::abs(between) > kClose * x(i) ? (x(i) * ratio_(i) - sign * x(j) * ratio_(j)) / between : mean;
      },
      [&](Index c, Index j) { flexible_(c) = ratio_(j); });
}

/// The change of w that follows from a change of A.
template <class Real>
void PowerPath<Real>::bend(const Vector& change, Vector& answer) {
  if (frame_.entrywise()) {
    answer = flexible_.cwiseProduct(change);
    return;
  }
  frame_.into(change, coordinates_);
  coordinates_.array() *= flexible_.array();
  frame_.out_of(coordinates_, answer);
}

template <class Real>
bool PowerPath<Real>::factorize() {
  damping_.resize(m_);
  for (Index k = 0; k < m_; ++k) damping_(k) = rows_.equal(k) ? Real{0} : slack_(k) / lambda_(k);
  return schur_.form(rows_, frame_, flexible_, damping_);
}

/// The step to λs = target, corrected by the second-order term from the affine step.
template <class Real>
void PowerPath<Real>::direction(Real target, bool corrected) {
  goal_.setZero(m_);
  for (Index k = 0; k < m_; ++k) {
    if (!rows_.equal(k))
      goal_(k) = (target - (corrected ? affine_dslack_(k) * affine_dlambda_(k) : 0)) / lambda_(k) - slack_(k);
  }
  rows_.products().values(missing_, product_);
  dlambda_ = rows_.b() + slack_ - value_ + goal_ - product_;
  schur_.solve(dlambda_);
  rows_.products().weigh(dlambda_, da_);
  bend(da_, dw_);
  dw_ += missing_;
  dslack_ = goal_ - damping_.cwiseProduct(dlambda_);
}

/// Makes the step meet the rows. The factorisation loses digits if entries of flexible_ have very different sizes, and
/// large ones amplify the rounding of A(Δλ). So this runs conjugate gradients, preconditioned by the factor, on the
/// residual of the step itself; then only the rounding of the correction counts.
template <class Real>
void PowerPath<Real>::refine() {
  constexpr Real kMet = 16 * std::numeric_limits<Real>::epsilon();
  Real before = 0;
  for (int round = 0; round < kRefinements; ++round) {
    rows_.products().values(dw_, product_);
    rest_ = rows_.b() + slack_ + dslack_ - value_ - product_;
    const Real error = rest_.cwiseAbs().maxCoeff();
    if (!(error > kMet)) return;
    better_ = rest_;
    schur_.solve(better_);
    const Real now = rest_.dot(better_);
    if (round > 0) better_ += now / before * conjugate_;
    conjugate_ = better_;
    before = now;
    rows_.products().weigh(conjugate_, more_a_);
    bend(more_a_, more_w_);
    rows_.products().values(more_w_, product_);
    product_ += damping_.cwiseProduct(conjugate_);
    const Real step = now / conjugate_.dot(product_);
    if (!((rest_ - step * product_).cwiseAbs().maxCoeff() < error)) return;  // rounding, or rows that are dependent
    dlambda_ += step * conjugate_;
    dslack_ -= step * damping_.cwiseProduct(conjugate_);
    da_ += step * more_a_;
    dw_ += step * more_w_;
  }
}

/// The longest step, at most 1, that keeps λ, s ≥ 0. One length for both, because λ and w share equations.
template <class Real>
Real PowerPath<Real>::reach() const {
  const Real stay = static_cast<Real>(kStay);
  const auto bounded = [&](Index k) { return !rows_.equal(k); };
  const Real dual = step_to_boundary(0, m_, lambda_, dlambda_, 1 / stay, bounded);
  return stay * step_to_boundary(0, m_, slack_, dslack_, dual, bounded);
}

/// λs per inequality after a step
template <class Real>
Real PowerPath<Real>::mean_product(Real step) const {
  if (inequalities_ == 0) return 0;
  return complementarity(0, m_, slack_, dslack_, step, lambda_, dlambda_, step) / static_cast<Real>(inequalities_);
}

/// Predictor and corrector. Returns the λs it leads to, and leaves its ratio to the present one in center_.
template <class Real>
Real PowerPath<Real>::choose_direction() {
  if (inequalities_ == 0) {
    center_ = static_cast<Real>(kEasy);
    direction(0, false);
    refine();
    return 0;
  }
  const Real mean = mean_product(0);
  direction(0, false);
  const Real ratio = std::clamp(mean_product(reach()) / mean, Real{0}, Real{1});
  affine_dlambda_ = dlambda_;
  affine_dslack_ = dslack_;
  center_ = ratio * ratio * ratio;
  const bool central = last_step_ >= static_cast<Real>(kShort);
  if (!central) center_ = 1;
  // λs must not vanish before the distance from the curve does, or rows could no longer become inactive.
  const Real least = static_cast<Real>(kStarved) * mismatch_ / static_cast<Real>(inequalities_);
  if (mean < least) center_ = std::min(static_cast<Real>(kFeed), least / mean);
  direction(center_ * mean, central);
  if (central && !(merit_slope(0, center_ * mean) < 0)) direction(center_ * mean, false);
  refine();
  return center_ * mean;
}

/// The slope along the step, `step` of it taken, of what the path minimises for given ε and λs = target: in (w, s)
/// Σ∫curve − target Σ log s with the rows weighted by λ + Δλ, or in λ Σ∫curve(A(λ)) − bᵀλ − target Σ log λ.
template <class Real>
Real PowerPath<Real>::merit_slope(Real step, Real target) const {
  Real slope = primal_ ? (curve_ - old_a_ - da_).dot(dw_) : curve_.dot(da_) - rows_.b().dot(dlambda_);
  for (Index k = 0; k < m_; ++k) {
    if (rows_.equal(k)) continue;
    slope += primal_ ? (lambda_(k) + dlambda_(k) - target / (slack_(k) + step * dslack_(k))) * dslack_(k)
                     : -target / (lambda_(k) + step * dlambda_(k)) * dlambda_(k);
  }
  return slope;
}

/// Moves w and A(λ) along the step as far as the merit function hardly ascends. Judges by slopes, because near the
/// optimum rounding hides differences of values.
template <class Real>
Real PowerPath<Real>::search(Real target) {
  const Real before = merit_slope(0, target);
  for (Real step = reach();;) {
    w_ = old_w_ + step * dw_;
    a_ = old_a_ + step * da_;
    trace(true);
    const Real after = merit_slope(step, target);
    if (after <= static_cast<Real>(kOvershoot) * std::abs(before) || !(step > static_cast<Real>(kSmallestStep)))
      return step;
    const Real zero = before / (before - after);
    step *=
        zero > static_cast<Real>(kShorter) ? std::min(zero, static_cast<Real>(kLonger)) : static_cast<Real>(kShorter);
  }
}

/// Moves λs closer to its mean by clamping λ or s, whichever the merit function does not depend on.
template <class Real>
void PowerPath<Real>::recenter(Real mean) {
  const Real off = static_cast<Real>(kOffCenter);
  for (Index k = 0; k < m_; ++k) {
    if (rows_.equal(k)) continue;
    Real& free = primal_ ? lambda_(k) : slack_(k);
    const Real central = mean / (primal_ ? slack_(k) : lambda_(k));
    free = std::clamp(free, central / off, central * off);
  }
}

/// Computes the gap between the bound of λ and W, scaled to meet the rows; keeps the best point.
template <class Real>
void PowerPath<Real>::judge() {
  const Real sum = power_.sum(),
             other = primal_ ? power_sum(frame_.values_of(a_), q_) : power_sum(frame_.values_of(w_), p_);
  const Real norm = std::pow(primal_ ? sum : other, 1 / p_), dual_norm = std::pow(primal_ ? other : sum, 1 / q_);
  mismatch_ = std::clamp((primal_ ? sum : other) / p_ + (primal_ ? other : sum) / q_ - a_.dot(w_), Real{0},
                         primal_ ? sum : other);
  bound_ = dual_norm > 0 ? rows_.b().dot(lambda_) / dual_norm : Real{0};
  Real stretch = 0, violation = 0;
  bool fixed = false;  // an equality with b ≠ 0 fixes the length of W
  for (Index k = 0; k < m_; ++k) {
    if (rows_.equal(k)) {
      fixed = fixed || rows_.b()(k) != 0;
    } else if (rows_.b()(k) > 0) {
      stretch = std::max(stretch, value_(k) > 0 ? rows_.b()(k) / value_(k) : std::numeric_limits<Real>::infinity());
    }
  }
  if (fixed || !(stretch > 0 && std::isfinite(stretch))) stretch = 1;
  for (Index k = 0; k < m_; ++k) {
    const Real missing = rows_.b()(k) - stretch * value_(k);
    violation = std::max(violation, rows_.equal(k) ? std::abs(missing) : missing);
  }
  objective_ = norm * stretch;
  const auto gap = static_cast<double>(std::abs(objective_ - bound_) / objective_ + violation);
  if (gap < best_gap_) {
    best_gap_ = gap;
    best_w_ = w_ * stretch;
    best_lambda_ = lambda_;
  }
}

template <class Real>
bool PowerPath<Real>::follow(const Stop& stop) {
  int patience = kPatience;
  for (double reference = kInfinity;; ++iterations_) {
    judge();
    if (stop(static_cast<double>(objective_ * rows_.scale()), static_cast<double>(bound_ * rows_.scale())))
      return false;
    if (best_gap_ < kProgress * reference) {
      reference = best_gap_;
      patience = kPatience;
    }
    if (best_gap_ <= kGoal || iterations_ == kIterations || --patience == 0) return true;
    linearize();
    if (!factorize()) return true;
    old_w_ = w_;
    old_a_ = a_;
    const Real target = choose_direction();
    if (!dw_.allFinite() || !dlambda_.allFinite()) return true;
    const Real step = last_step_ = search(target);
    if (!(step > static_cast<Real>(kSmallestStep))) return true;
    const Real mean = mean_product(step);
    slack_ += step * dslack_;
    lambda_ += step * dlambda_;
    if (step < static_cast<Real>(kShort)) recenter(mean);
    rows_.products().values(w_, value_);
    rows_.products().weigh(lambda_, a_);
    smoothing_ = std::max(static_cast<Real>(kSmoothest), inequalities_ > 0 ? static_cast<Real>(kSmoothing) * mean
                                                                           : smoothing_ * (1 - step * (1 - center_)));
    trace(false);
  }
}

template <class Real>
void PowerPath<Real>::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  rows_.weights_out(best_w_, W);
  rows_.duals_out(best_lambda_, lambda);
}

template class PowerPath<double>;
template class PowerPath<long double>;

}  // namespace attsvm::internal
