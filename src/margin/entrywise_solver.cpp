#include "margin/entrywise_solver.h"

#include <cmath>

#include "base/blas.h"

namespace attsvm {
namespace {

constexpr Index kMostRows = 4000, kMostNumbers = 20'000'000;  // rows; rows times unknowns
constexpr Index kIterations = 200;
constexpr double kStay = 0.98, kSmallestStep = 1e-8, kRegular = 1e-14;
constexpr double kGoal = 1e-13;  // relative gap that is as good as rounding allows
constexpr int kPatience = 12;    // iterations without a better gap

double power(double x, double exponent) { return std::copysign(std::pow(std::abs(x), exponent), x); }

}  // namespace

void EntrywiseSolver::load(const MarginProblem& problem, const MarginSolution& frobenius) {
  d_ = problem.d();
  dz_ = problem.dz();
  unknowns_ = d_ * dz_;
  rows_of_problem_ = problem.rows();
  scale_ = frobenius.W.cwiseAbs().maxCoeff();
  R_.resize(problem.rows(), unknowns_);
  row_.grow(problem.rows());
  equal_.grow(problem.rows());
  for (auto* vector : {&size_, &b_, &lambda_}) vector->resize(problem.rows());
  m_ = 0;
  Eigen::VectorXd delta(d_);
  for (const MarginGroup& group : problem.groups()) {
    const ConstVector zeta(group.z, dz_);
    const double zeta_norm = zeta.stableNorm();
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      problem.delta(group, k, delta.data());
      const double delta_norm = delta.stableNorm();
      if (delta_norm == 0 || zeta_norm == 0) continue;  // reads 0 whatever W is
      Eigen::Map<RowMatrix>(R_.row(m_).data(), d_, dz_).noalias() =
          (delta / delta_norm) * (zeta / zeta_norm).transpose();
      row_[m_] = k;
      equal_[m_] = problem.equal(k) ? 1 : 0;
      size_(m_) = delta_norm * zeta_norm;
      b_(m_) = problem.rhs(k) / delta_norm / zeta_norm / scale_;
      lambda_(m_) = frobenius.dual(k) * size_(m_);
      ++m_;
    }
  }
  R_.conservativeResize(m_, unknowns_);
  for (auto* vector : {&size_, &b_, &lambda_}) vector->conservativeResize(m_);
  w_ = 1.5 / scale_ * Eigen::Map<const Eigen::VectorXd>(frobenius.W.data(), unknowns_);
  // λ in the units of φ(w) = A(λ): bᵀλ = Σ|w|^p. Rows without a multiplier get what is central for their slack.
  const double total = b_.dot(lambda_), size = w_.array().abs().pow(p_).sum();
  lambda_ *= total > 0 ? size / total : 0;
  value_ = R_ * w_;
  slack_.resize(m_);
  for (Index k = 0; k < m_; ++k) slack_(k) = equal_[k] != 0 ? 0 : std::max(value_(k) - b_(k), 0.1);
  const double mu = std::max(slack_.dot(lambda_), 0.1 * size) / static_cast<double>(m_);
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] == 0) lambda_(k) = std::max(lambda_(k), 0.3 * mu / slack_(k));
  }
}

/// Δw = missing + flexible·A(Δλ). Of φ(w) = a and its inverse w = φ⁻¹(a) the one that is smooth at zero is linearised.
void EntrywiseSolver::linearize() {
  weighted_.noalias() = R_.transpose() * lambda_;
  flexible_.resize(unknowns_);
  missing_.resize(unknowns_);
  for (Index j = 0; j < unknowns_; ++j) {
    const double a = weighted_(j), there = power(a, q_ - 1);
    if (p_ < 2) {
      flexible_(j) = (q_ - 1) * std::pow(std::abs(a), q_ - 2);
      missing_(j) = there - w_(j);
    } else {
      const double w = std::max({std::abs(w_(j)), std::abs(there), 1e-150});
      flexible_(j) = 1 / ((p_ - 1) * std::pow(w, p_ - 2));
      missing_(j) = flexible_(j) * (a - power(w_(j), p_ - 1));
    }
  }
}

bool EntrywiseSolver::factorize() {
  scaled_ = R_ * flexible_.cwiseSqrt().asDiagonal();
  schur_.resize(m_, m_);
  gemm(false, true, m_, m_, unknowns_, 1, scaled_.data(), unknowns_, scaled_.data(), unknowns_, 0, schur_.data(), m_);
  const double largest = schur_.diagonal().maxCoeff();
  for (Index k = 0; k < m_; ++k)
    schur_(k, k) +=
        (equal_[k] != 0 ? 0 : slack_(k) / lambda_(k)) + kRegular * std::max(schur_(k, k), kRegular * largest);
  return cholesky(m_, schur_.data(), m_);
}

void EntrywiseSolver::direction(double target, bool corrected) {
  goal_.setZero(m_);
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] == 0)
      goal_(k) = (target - (corrected ? affine_dslack_(k) * affine_dlambda_(k) : 0)) / lambda_(k) - slack_(k);
  }
  right_ = b_ + slack_ - value_ + goal_;
  right_.noalias() -= R_ * missing_;
  dlambda_ = right_;
  solve_lower(false, m_, schur_.data(), m_, dlambda_.data());
  solve_lower(true, m_, schur_.data(), m_, dlambda_.data());
  dw_.noalias() = R_.transpose() * dlambda_;
  dw_ = missing_ + flexible_.cwiseProduct(dw_);
  dslack_.resize(m_);
  for (Index k = 0; k < m_; ++k) dslack_(k) = equal_[k] != 0 ? 0 : goal_(k) - slack_(k) / lambda_(k) * dlambda_(k);
}

/// The gap of W stretched to meet the rows, against the bound of λ; the best is kept.
double EntrywiseSolver::standing() {
  weighted_.noalias() = R_.transpose() * lambda_;
  entries_ = Eigen::Map<const RowMatrix>(weighted_.data(), d_, dz_);
  const double dual_norm = norm_.dual_of(entries_);
  bound_ = dual_norm > 0 ? b_.dot(lambda_) / dual_norm : 0;
  double stretch = 0, violation = 0;
  bool fixed = false;  // an equality to something else than 0 leaves W no other length
  for (Index k = 0; k < m_; ++k) {
    if (equal_[k] != 0) {
      fixed = fixed || b_(k) != 0;
    } else if (b_(k) > 0) {
      stretch = std::max(stretch, value_(k) > 0 ? b_(k) / value_(k) : HUGE_VAL);
    }
  }
  if (fixed || !(stretch > 0 && std::isfinite(stretch))) stretch = 1;
  for (Index k = 0; k < m_; ++k) {
    const double missing = b_(k) - stretch * value_(k);
    violation = std::max(violation, equal_[k] != 0 ? std::abs(missing) : missing);
  }
  entries_ = Eigen::Map<const RowMatrix>(w_.data(), d_, dz_);
  objective_ = norm_.of(entries_) * stretch;
  const double gap = std::abs(objective_ - bound_) / objective_ + violation;
  if (gap < best_gap_) {
    best_gap_ = gap;
    best_W_ = entries_ * (scale_ * stretch);
    best_dual_.setZero(rows_of_problem_);
    for (Index k = 0; k < m_; ++k) best_dual_(row_[k]) = lambda_(k) / size_(k);
  }
  return gap;
}

EntrywiseSolver::Outcome EntrywiseSolver::solve(const MarginProblem& problem, double power,
                                                const MarginSolution& frobenius, double tolerance,
                                                const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas blas;
  p_ = power;
  q_ = power / (power - 1);
  norm_ = Norm::entrywise(power);
  iterations_ = 0;
  best_W_ = frobenius.W;
  best_dual_ = frobenius.dual;
  best_gap_ = HUGE_VAL;
  method_ = "Frobenius answer";
  if (frobenius.W.isZero(0)) return Outcome::converged;
  if (problem.rows() > kMostRows || problem.rows() * problem.d() * problem.dz() > kMostNumbers) return Outcome::stalled;
  method_ = "interior point";
  load(problem, frobenius);
  double inequalities = 0;
  for (Index k = 0; k < m_; ++k) inequalities += equal_[k] != 0 ? 0 : 1;
  int patience = kPatience;
  for (;; ++iterations_) {
    const double before = best_gap_, gap = standing();
    if (stop({.iteration = iterations_, .objective = objective_ * scale_, .dual_objective = bound_ * scale_}))
      return Outcome::stopped;
    patience = best_gap_ < 0.9 * before ? kPatience : patience - 1;
    if (gap <= kGoal || iterations_ == kIterations || patience == 0) break;
    linearize();
    if (!factorize()) break;
    const auto reach = [&](const Eigen::VectorXd& x, const Eigen::VectorXd& dx) {
      double step = 1 / kStay;
      for (Index k = 0; k < m_; ++k) {
        if (equal_[k] == 0 && dx(k) < 0) step = std::min(step, -x(k) / dx(k));
      }
      return kStay * step;
    };
    const double mu = inequalities > 0 ? slack_.dot(lambda_) / inequalities : 0;
    direction(0, false);
    const double primal = reach(slack_, dslack_), dual = reach(lambda_, dlambda_);
    const double after =
        inequalities > 0 ? (slack_ + primal * dslack_).dot(lambda_ + dual * dlambda_) / inequalities : 0;
    affine_dlambda_ = dlambda_;
    affine_dslack_ = dslack_;
    const double ratio = mu > 0 ? std::clamp(after / mu, 0.0, 1.0) : 0;
    direction(ratio * ratio * ratio * mu, true);
    const double step =
        std::min(reach(slack_, dslack_), reach(lambda_, dlambda_));  // one step: λ and w share equations
    if (!(step > kSmallestStep) || !dw_.allFinite()) break;
    w_ += step * dw_;
    slack_ += step * dslack_;
    lambda_ += step * dlambda_;
    value_.noalias() = R_ * w_;
  }
  return best_gap_ <= tolerance ? Outcome::converged : Outcome::stalled;
}

void EntrywiseSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = best_W_;
  lambda = best_dual_;
}

}  // namespace attsvm
