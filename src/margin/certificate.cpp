#include "margin/certificate.h"

#include <cmath>
#include <limits>

#include "margin/stream_kernels.h"

namespace attsvm {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kAllowedViolation = 5e-10;  // half of what verify accepts, for rows of size one
constexpr double kCertificate = 1e-12;       // ‖A(λ)‖ relative to Σ |λ| ‖δ‖ ‖ζ‖

double relative_gap(double objective, double bound) {
  return objective > 0 ? std::max(0.0, objective - bound) / objective : 0;
}

}  // namespace

void Certifier::look(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& lambda,
                     Eigen::VectorXd& values) {
  const Index d = problem.d(), dz = problem.dz();
  values.resize(problem.rows());
  for (auto* vector : {&delta_, &u_, &g_}) vector->resize(d);
  A_.setZero(d, dz);
  size_ = 0;
  for (const MarginGroup& group : problem.groups()) {
    row_dots(W.data(), d, dz, group.z, u_.data());
    g_.setZero();
    double group_size = 0;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      problem.delta(group, k, delta_.data());
      row_dots(delta_.data(), 1, d, u_.data(), &values(k));
      if (lambda(k) == 0) continue;
      g_ += lambda(k) * delta_;
      group_size += std::abs(lambda(k)) * delta_.norm();
    }
    if (group_size == 0) continue;
    size_ += group_size * ConstVector(group.z, dz).norm();
    add_outer(g_.data(), d, group.z, dz, A_.data());
  }
}

void Certifier::certify(const MarginProblem& problem, double tolerance, MarginSolution& solution) {
  double bound = 0;
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k)) solution.dual(k) = std::max(solution.dual(k), 0.0);
    bound += problem.rhs(k) * solution.dual(k);
  }
  look(problem, solution.W, solution.dual, solution.slack);
  const double size = A_.norm();
  if (size > 0) {
    solution.dual /= size;
    solution.dual_objective = std::max(0.0, bound / size);
  } else {
    solution.dual_objective = 0;
  }

  const auto violation_of = [&](double factor) {
    double worst = 0;
    for (Index k = 0; k < problem.rows(); ++k) {
      const double slack = factor * solution.slack(k) - problem.rhs(k);
      worst = std::max(worst, problem.equal(k) ? std::abs(slack) : -slack);
    }
    return worst;
  };
  const double norm = solution.W.norm();
  double stretch = 1;  // the smallest factor ≥ 1 that meets every row, where one exists
  for (Index k = 0; problem.all_positive() && k < problem.rows(); ++k) {
    const double needed = problem.rhs(k) / solution.slack(k);
    if (!(needed > 0)) {  // a row of the wrong sign: no scaling helps
      stretch = 1;
      break;
    }
    stretch = std::max(stretch, needed);
  }
  // Rounding alone can cost more than the tolerance when ‖W‖ is huge; W is then left as it is if it meets the rows
  // nearly.
  const bool as_it_is =
      relative_gap(norm * stretch, solution.dual_objective) > tolerance && violation_of(1) <= kAllowedViolation;
  if (as_it_is) stretch = 1;
  if (stretch > 1) solution.W *= stretch;
  solution.objective = solution.W.norm();
  solution.violation = violation_of(stretch);
  solution.support = 0;
  for (Index k = 0; k < problem.rows(); ++k) {
    solution.slack(k) = stretch * solution.slack(k) - problem.rhs(k);
    if (solution.slack(k) <= kSupportTolerance * std::max(1.0, std::abs(problem.rhs(k)))) ++solution.support;
  }
  solution.gap = relative_gap(solution.objective, solution.dual_objective);
  solution.residual = 0;
  const bool proven = solution.gap <= tolerance && solution.violation <= kAllowedViolation * 2;
  solution.status = proven ? MarginStatus::optimal : MarginStatus::limit;
}

bool Certifier::certify_conflict(const MarginProblem& problem, MarginSolution& solution) {
  double total = 0;
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k)) solution.dual(k) = std::max(solution.dual(k), 0.0);
    total += problem.rhs(k) * solution.dual(k);
  }
  solution.dual /= total;
  solution.W.setZero(problem.d(), problem.dz());
  look(problem, solution.W, solution.dual, solution.slack);
  solution.residual = A_.norm();
  solution.status = MarginStatus::infeasible;
  for (Index k = 0; k < problem.rows(); ++k) solution.slack(k) = -problem.rhs(k);
  solution.objective = solution.dual_objective = solution.gap = solution.violation = kNaN;
  solution.support = 0;
  return total > 0 && solution.residual <= kCertificate * size_;
}

}  // namespace attsvm
