#include "margin/entrywise_path.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstdio>

#include "base/blas.h"

namespace attsvm {
namespace {

constexpr Index kIterations = 300;
constexpr double kStay = 0.98, kSmallestStep = 1e-8;
constexpr double kGoal = 1e-13;  // relative gap that is as good as rounding allows
constexpr double kOvershoot = 0.3;
constexpr int kRefinements = 10;
constexpr int kPatience = 20;    // iterations without a better gap

bool factor(Eigen::Matrix<double, -1, -1, Eigen::RowMajor>& A) { return cholesky(A.rows(), A.data(), A.rows()); }
void divide(const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>& L, Eigen::VectorXd& x) {
  solve_lower(false, L.rows(), L.data(), L.rows(), x.data());
  solve_lower(true, L.rows(), L.data(), L.rows(), x.data());
}
void square(const RowMatrix& A, RowMatrix& product) {
  gemm(false, true, A.rows(), A.rows(), A.cols(), 1, A.data(), A.cols(), A.data(), A.cols(), 0, product.data(),
       A.rows());
}

using WideMatrix = Eigen::Matrix<long double, -1, -1, Eigen::RowMajor>;
using WideVector = Eigen::Matrix<long double, -1, 1>;
bool factor(WideMatrix& A) {
  Eigen::LLT<Eigen::Ref<WideMatrix>> decomposition(A);
  return decomposition.info() == Eigen::Success;
}
void divide(const WideMatrix& L, WideVector& x) {
  L.triangularView<Eigen::Lower>().solveInPlace(x);
  L.transpose().triangularView<Eigen::Upper>().solveInPlace(x);
}
void square(const WideMatrix& A, WideMatrix& product) { product.noalias() = A * A.transpose(); }

double env(const char* n, double v) { const char* e = std::getenv(n); return e ? std::atof(e) : v; }

template <class Vector>
auto power_norm(const Vector& x, typename Vector::Scalar p) {
  using Real = typename Vector::Scalar;
  const Real top = x.cwiseAbs().maxCoeff();
  if (!(top > 0)) return Real{0};
  Real sum = 0;
  for (Index j = 0; j < x.size(); ++j) {
    const Real part = std::abs(x(j)) / top;
    if (part > 0) sum += std::pow(part, p);
  }
  return top * std::pow(sum, 1 / p);
}

}  // namespace

template <class Real>
void EntrywisePath<Real>::load(const MarginProblem& problem, double power, const MarginSolution& frobenius) {
  p_ = power;
  q_ = p_ / (p_ - 1);
  primal_ = p_ >= 2;
  r_ = primal_ ? p_ : q_;
  d_ = problem.d();
  dz_ = problem.dz();
  unknowns_ = d_ * dz_;
  rows_of_problem_ = problem.rows();
  scale_ = frobenius.W.cwiseAbs().maxCoeff();
  R_.resize(problem.rows(), unknowns_);
  row_.grow(problem.rows());
  equal_.grow(problem.rows());
  for (auto* vector : {&size_, &b_, &lambda_}) vector->resize(problem.rows());
  m_ = inequalities_ = 0;
  Vector delta(d_), zeta(dz_);
  for (const MarginGroup& group : problem.groups()) {
    zeta = ConstVector(group.z, dz_).template cast<Real>();
    const Real zeta_norm = zeta.stableNorm();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      const Index drop = problem.drop(k);
      for (Index j = 0; j < d_; ++j) {
        const Real kept = static_cast<Real>(group.sign) * group.X[group.keep * d_ + j];
        delta(j) = drop < 0 ? kept : kept - group.X[drop * d_ + j];
      }
      const Real delta_norm = delta.stableNorm();
      if (delta_norm == 0 || zeta_norm == 0) continue;  // reads 0 whatever W is
      Eigen::Map<Matrix>(R_.row(m_).data(), d_, dz_).noalias() = (delta / delta_norm) * (zeta / zeta_norm).transpose();
      row_[m_] = k;
      equal_[m_] = problem.equal(k) ? 1 : 0;
      inequalities_ += problem.equal(k) ? 0 : 1;
      size_(m_) = delta_norm * zeta_norm;
      b_(m_) = problem.rhs(k) / delta_norm / zeta_norm / scale_;
      lambda_(m_) = frobenius.dual(k) * size_(m_);
      ++m_;
    }
  }
  R_.conservativeResize(m_, unknowns_);
  for (auto* vector : {&size_, &b_, &lambda_}) vector->conservativeResize(m_);
  for (auto* vector : {&dlambda_, &dslack_}) vector->setZero(m_);
  start(frobenius);
}

/// W = 1.5 W_F leaves every row some slack, and λ_F is scaled to bᵀλ = Σ|w|^p. Rows without a multiplier get what is
/// central for their slack, rows without slack what is central for their multiplier.
template <class Real>
void EntrywisePath<Real>::start(const MarginSolution& frobenius) {
  w_ = Real(1.5) / scale_ * Eigen::Map<const Eigen::VectorXd>(frobenius.W.data(), unknowns_).template cast<Real>();
  Real size = 0;
  for (Index j = 0; j < unknowns_; ++j) size += w_(j) == 0 ? 0 : std::pow(std::abs(w_(j)), p_);
  const auto dual_scale = [&] {  // of λ, where bᵀλ − ‖A(λ)‖_q^q/q is largest
    a_.noalias() = R_.transpose() * lambda_;
    const Real norm = power_norm(a_, q_), total = b_.dot(lambda_);
    return total > 0 && norm > 0 ? std::pow(total / norm, 1 / (q_ - 1)) / norm : Real{0};
  };
  lambda_ *= dual_scale();
  value_.noalias() = R_ * w_;
  slack_.setZero(m_);
  const Real mu = static_cast<Real>(env("EW_MU", 0.1)) * size / static_cast<Real>(std::max<Index>(inequalities_, 1));
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] != 0) continue;
    const Real natural = value_(k) - b_(k);
    const Real enough = lambda_(k) > 10 * mu ? mu / lambda_(k) : Real(0.1);
    slack_(k) = std::max(natural, enough);
    lambda_(k) = std::max(lambda_(k), mu / slack_(k));
  }
  if (const Real scale = dual_scale(); !primal_ && scale > 0 && scale < 1) lambda_ *= scale;
  smoothing_ = mu * static_cast<Real>(env("EW_C", 0.1));
  a_.noalias() = R_.transpose() * lambda_;
  best_w_ = w_;
  best_lambda_ = lambda_;
  best_gap_ = HUGE_VAL;
  iterations_ = 0;
  trace();
}

/// The smoothed curve at x, its slope there, and how far (w, A(λ)) is from it: Σ (y − curve)²/slope, which like λs is
/// a share of the gap.
template <class Real>
void EntrywisePath<Real>::trace() {
  const Vector &x = primal_ ? w_ : a_, &y = primal_ ? a_ : w_;
  const Real exponent = (r_ - 2) / r_;
  curve_.resize(unknowns_);
  slope_.resize(unknowns_);
  distance_ = 0;
  for (Index j = 0; j < unknowns_; ++j) {
    const Real power = x(j) == 0 ? Real{0} : std::pow(std::abs(x(j)), r_), sum = power + smoothing_;
    const Real factor = std::pow(sum, exponent);
    curve_(j) = x(j) * factor;
    slope_(j) = factor * ((r_ - 1) * power + smoothing_) / sum;
    const Real off = y(j) - curve_(j);
    distance_ += off * off / slope_(j);
  }
}

/// Where y is beyond the curve's value at x, the tangent at x would overshoot; that at the point above y does not.
template <class Real>
void EntrywisePath<Real>::linearize() {
  const Vector &x = primal_ ? w_ : a_, &y = primal_ ? a_ : w_;
  flexible_.resize(unknowns_);
  missing_.resize(unknowns_);
  for (Index j = 0; j < unknowns_; ++j) {
    const Real off = y(j) - curve_(j);
    Real slope = slope_(j);
    if (std::abs(y(j)) > 2 * std::abs(curve_(j))) {
      const Real there = std::copysign(std::pow(std::abs(y(j)), 1 / (r_ - 1)), y(j));
      slope = std::max(slope, off / (there - x(j)));
    }
    flexible_(j) = primal_ ? 1 / slope : slope;
    missing_(j) = primal_ ? off / slope : -off;
  }
}

template <class Real>
bool EntrywisePath<Real>::factorize() {
  constexpr Real kRegular = 64 * std::numeric_limits<Real>::epsilon();
  scaled_ = R_ * flexible_.cwiseSqrt().asDiagonal();
  damping_.resize(m_);
  schur_.resize(m_, m_);
  square(scaled_, schur_);
  const Real largest = schur_.diagonal().maxCoeff();
  for (Index k = 0; k < m_; ++k) {
    damping_(k) = equal_[k] != 0 ? Real{0} : slack_(k) / lambda_(k);
    schur_(k, k) += damping_(k) + kRegular * std::max(schur_(k, k), kRegular * largest);
  }
  return factor(schur_);
}

template <class Real>
void EntrywisePath<Real>::solve_schur(const Vector& right, Vector& x) {
  constexpr Real kRefined = 64 * std::numeric_limits<Real>::epsilon();
  const auto apply = [&](const Vector& v, Vector& out) {
    da_.noalias() = R_.transpose() * v;
    da_.array() *= flexible_.array();
    out.noalias() = R_ * da_;
    out += damping_.cwiseProduct(v);
  };
  x = right;
  divide(schur_, x);
  apply(x, product_);
  rest_ = right - product_;
  Real error = rest_.cwiseAbs().maxCoeff(), before = 0;
  const Real enough = kRefined * right.cwiseAbs().maxCoeff();
  for (int round = 0; round < kRefinements && error > enough; ++round) {
    better_ = rest_;
    divide(schur_, better_);
    const Real now = rest_.dot(better_);
    if (round > 0) better_ += now / before * conjugate_;
    conjugate_ = better_;
    before = now;
    apply(conjugate_, product_);
    const Real step = now / conjugate_.dot(product_);
    rest_ -= step * product_;
    const Real left = rest_.cwiseAbs().maxCoeff();
    if (!(left < error)) break;  // rounding, or rows that depend on each other
    x += step * conjugate_;
    error = left;
  }
}

template <class Real>
void EntrywisePath<Real>::direction(Real target, bool corrected) {
  goal_.setZero(m_);
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] == 0)
      goal_(k) = (target - (corrected ? affine_dslack_(k) * affine_dlambda_(k) : 0)) / lambda_(k) - slack_(k);
  }
  right_ = b_ + slack_ - value_ + goal_;
  right_.noalias() -= R_ * missing_;
  solve_schur(right_, dlambda_);
  da_.noalias() = R_.transpose() * dlambda_;
  dw_ = missing_ + flexible_.cwiseProduct(da_);
  dslack_ = goal_ - damping_.cwiseProduct(dlambda_);
}

template <class Real>
Real EntrywisePath<Real>::reach(const Vector& x, const Vector& dx) const {
  Real step = 1 / static_cast<Real>(kStay);
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] == 0 && dx(k) < 0) step = std::min(step, -x(k) / dx(k));
  }
  return static_cast<Real>(kStay) * step;
}

/// λs a row after a step
template <class Real>
Real EntrywisePath<Real>::mean_product(Real step) const {
  if (inequalities_ == 0) return 0;
  Real sum = 0;
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] == 0) sum += (slack_(k) + step * dslack_(k)) * (lambda_(k) + step * dlambda_(k));
  }
  return sum / static_cast<Real>(inequalities_);
}

/// The gap of W stretched to meet the rows, against the bound of λ; the best is kept.
template <class Real>
void EntrywisePath<Real>::judge() {
  const Real dual_norm = power_norm(a_, q_);
  bound_ = dual_norm > 0 ? b_.dot(lambda_) / dual_norm : Real{0};
  Real stretch = 0, violation = 0;
  bool fixed = false;  // an equality to something else than 0 leaves W no other length
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] != 0) {
      fixed = fixed || b_(k) != 0;
    } else if (b_(k) > 0) {
      stretch = std::max(stretch, value_(k) > 0 ? b_(k) / value_(k) : static_cast<Real>(HUGE_VAL));
    }
  }
  if (fixed || !(stretch > 0 && std::isfinite(stretch))) stretch = 1;
  for (Index k = 0; k < m_; ++k) {
    const Real missing = b_(k) - stretch * value_(k);
    violation = std::max(violation, equal_[k] != 0 ? std::abs(missing) : missing);
  }
  objective_ = power_norm(w_, p_) * stretch;
  const auto gap = static_cast<double>(std::abs(objective_ - bound_) / objective_ + violation);
  if (gap < best_gap_) {
    best_gap_ = gap;
    best_w_ = w_ * stretch;
    best_lambda_ = lambda_;
  }
}

/// The slope of the merit function along the step, `step` of it taken; trace() was called there.
template <class Real>
Real EntrywisePath<Real>::incline(Real step, Real target) const {
  Real slope = 0;
  if (primal_) {
    slope = (curve_ - old_a_ - da_).dot(dw_);
    for (Index k = 0; k < m_; ++k) {
      if (equal_[k] == 0) slope += (lambda_(k) + dlambda_(k) - target / (slack_(k) + step * dslack_(k))) * dslack_(k);
    }
  } else {
    slope = curve_.dot(da_) - b_.dot(dlambda_);
    for (Index k = 0; k < m_; ++k) {
      if (equal_[k] == 0) slope -= target / (lambda_(k) + step * dlambda_(k)) * dlambda_(k);
    }
  }
  return slope;
}

/// Takes λs closer to its mean where it is far off, by what the merit function does not see.
template <class Real>
void EntrywisePath<Real>::recenter(Real mean) {
  static const Real wide = (Real)env("EW_WIDE", 10);
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] != 0) continue;
    Real& given = primal_ ? lambda_(k) : slack_(k);
    const Real central = mean / (primal_ ? slack_(k) : lambda_(k));
    given = std::clamp(given, central / wide, central * wide);
  }
}

template <class Real>
bool EntrywisePath<Real>::follow(const Stop& stop) {
  const bool verbose = std::getenv("EW_V") != nullptr;
  const Real floor = static_cast<Real>(env("EW_FLOOR", 1e-16));
  int patience = kPatience;
  double reference = HUGE_VAL;
  const Real starve = (Real)env("EW_STARVE", 0.01);
  Real last = 1;
  for (;; ++iterations_) {
    judge();
    if (stop(static_cast<double>(objective_ * scale_), static_cast<double>(bound_ * scale_))) return false;
    if (best_gap_ < 0.9 * reference) {
      reference = best_gap_;
      patience = kPatience;
    }
    if (best_gap_ <= kGoal || iterations_ == kIterations || --patience == 0) break;
    linearize();
    if (!factorize()) { if (verbose) fprintf(stderr, "cholesky\n"); break; }
    const Real mu = mean_product(0);
    direction(0, false);
    const Real affine = std::min(reach(slack_, dslack_), reach(lambda_, dlambda_));
    const Real ratio = mu > 0 ? std::clamp(mean_product(affine) / mu, Real{0}, Real{1}) : Real(0.1);
    affine_dlambda_ = dlambda_;
    affine_dslack_ = dslack_;
    Real center = ratio * ratio * ratio;
    const Real open = std::min(Real{1}, std::abs(objective_ - bound_) / objective_) * std::pow(objective_, p_);
    if (mu * static_cast<Real>(inequalities_) < starve * open) center = std::min((Real)env("EW_RAISE",10), starve * open / static_cast<Real>(inequalities_) / mu);
    else if (last < Real(0.1)) center = 1;
    direction(center * mu, !(last < Real(0.1)));
    Real step = std::min(reach(slack_, dslack_), reach(lambda_, dlambda_));
    if (!dw_.allFinite() || !dlambda_.allFinite()) { if (verbose) fprintf(stderr, "nan\n"); break; }
    old_w_ = w_;
    old_a_ = a_;
    const Real target = center * mu;
    Real first = incline(0, target);
    const bool ascends = !(first < 0);
    if (ascends) {
      direction(target, false);
      step = std::min(reach(slack_, dslack_), reach(lambda_, dlambda_));
      first = incline(0, target);
    }
    int halvings = 0;
    const Real old_distance = distance_, old_smoothing = smoothing_;
    for (;; ++halvings) {
      w_ = old_w_ + step * dw_;
      a_ = old_a_ + step * da_;
      trace();
      const Real last = incline(step, target);
      if (last <= kOvershoot * std::abs(first) || step < kSmallestStep) break;
      step *= std::clamp(-first / (last - first), Real(0.1), Real(0.7));
    }
    if (verbose)
      fprintf(stderr, "%3d gap %.2e best %.2e mu %.2e smooth %.2e dist %.2e ratio %.2e step %.2e halv %d infeas %.2e first %.1e asc %d\n", (int)iterations_, (double)(std::abs(objective_ - bound_) / objective_), best_gap_, (double)mu,
              (double)old_smoothing, (double)old_distance, (double)ratio, (double)step, halvings, (double)(b_+slack_-value_).cwiseAbs().maxCoeff(), (double)first, ascends);
    if (!(step > kSmallestStep)) break;
    last = step;
    const Real mean = mean_product(step);
    slack_ += step * dslack_;
    lambda_ += step * dlambda_;
    value_.noalias() = R_ * w_;
    if (step < Real(0.1)) recenter(mean);
    a_.noalias() = R_.transpose() * lambda_;
    smoothing_ = std::max(floor, inequalities_ > 0 ? Real(0.1) * mean : old_smoothing * (1 - step * (1 - center)));
    trace();
  }
  return true;
}

template <class Real>
void EntrywisePath<Real>::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = (Eigen::Map<const Matrix>(best_w_.data(), d_, dz_) * scale_).template cast<double>();
  lambda.setZero(rows_of_problem_);
  for (Index k = 0; k < m_; ++k) lambda(row_[k]) = static_cast<double>(best_lambda_(k) / size_(k));
}

template class EntrywisePath<double>;
template class EntrywisePath<long double>;

}  // namespace attsvm
