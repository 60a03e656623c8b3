#include "margin/certify/certificate.h"

#include <algorithm>
#include <cmath>

#include "attsvm/verify.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
// The violation of a row that verify accepts: kRowTolerance |b|, or the effect of rounding W to double, as a share of
// ‖δ‖ ‖W‖ ‖ζ‖; for b = 0, kRowTolerance of that product.
constexpr double kRowTolerance = 0.9e-9;
constexpr double kRowRounding = 0.9 * 0x1p-50;
constexpr double kMostMissing = 0.4;        // of |b|, even if rounding allows more
constexpr double kScaling = 9e-7;           // how far rounding may move ‖A(dual)‖ from 1
constexpr double kProofShare = 1e-2;        // share of the tolerance that the proof of ‖A(dual)‖ may cost
constexpr double kRoundedSize = 0x1.8p-49;  // how far ‖W‖ may stay below a bound: three quarters of what verify allows
constexpr double kLargestLift = 1e-9;       // how far a bound may lie above ‖W‖ and count as rounding
constexpr double kLeastLift = 1e-14;        // the same where the tolerance is below what double precision can hold
constexpr int kStretches = 4;               // scalings of W, each of which rounds it anew
constexpr int kMendings = 20;               // sweeps over rows that rounding leaves short
constexpr double kMendable = 0x1p-44;       // violation, relative to ‖δ‖ ‖W‖ ‖ζ‖, that may be rounding
constexpr double kTouching = 1e-8;  // slack of a row that asks for 0, relative to ‖δ‖ ‖W‖ ‖ζ‖, that is no room
constexpr double kIndependent = 1e10;  // largest square of ‖L⁻¹‖_F, LLᵀ the Gram matrix of unit rows, that is plain
constexpr Index kMostGram = 400;       // rows whose Gram matrix is looked at

double relative_gap(double objective, double bound) {
  return objective > 0 ? std::max(0.0, objective - bound) / objective : 0;
}

void clip(const MarginProblem& problem, Eigen::VectorXd& dual) {
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k)) dual(k) = std::max(dual(k), 0.0);
  }
}

/// Whether an equation has a right-hand side other than 0.
bool has_given_numbers(const MarginProblem& problem) {
  for (Index k = 0; k < problem.rows(); ++k) {
    if (problem.equal(k) && problem.rhs(k) != 0) return true;
  }
  return false;
}

double weighted_rhs(const MarginProblem& problem, const RowSums& sums, const Eigen::VectorXd& dual) {
  return static_cast<double>(sums.number<long double>([&](Index segment) {
    long double sum = 0;
    for (Index k = sums.first_row(segment); k < sums.end_row(segment); ++k)
      sum += static_cast<long double>(problem.rhs(k)) * dual(k);
    return sum;
  }));
}

}  // namespace

double Certifier::dual_norm(const Norm& norm, double tolerance) {
  if (norm.is_frobenius()) return measure_.norm();
  if (!norm.is_nuclear()) return norm.dual_of(measure_.A());
  spectrum_.compute(measure_.A(), kProofShare * tolerance);
  return spectrum_.bound();
}

double Certifier::primal_norm(const MarginSolution& solution) {
  if (solution.norm.is_frobenius()) return norm_of(solution.W);
  // ½(‖K‖² + ‖Q‖²) is never below ‖KQᵀ‖_*, and equal to it where K and Q are balanced
  if (solution.norm.is_nuclear()) return 0.5 * (solution.K.squaredNorm() + solution.Q.squaredNorm());
  return solution.norm.of(solution.W);
}

void Certifier::stretch_weights(double factor, MarginSolution& solution) {
  if (solution.norm.is_nuclear()) {
    solution.K *= std::sqrt(factor);
    solution.Q *= std::sqrt(factor);
    solution.W.noalias() = solution.K * solution.Q.transpose();
  } else {
    solution.W *= factor;
  }
}

double Certifier::needed_stretch(const MarginProblem& problem, const RowSums& sums) const {
  double stretch = 1;  // infinite: scaling cannot
  for (Index k = 0; k < problem.rows() && stretch < kInfinity; ++k) {
    if (problem.rhs(k) == 0) continue;  // met by every multiple of W, or by none
    const double needed = problem.rhs(k) / measure_.values()(k);
    // An equation with b ≠ 0 fixes the length of W, and no scaling makes a row positive that is not.
    const bool possible = !problem.equal(k) && needed > 0 && std::isfinite(needed);
    stretch = possible ? std::max(stretch, needed) : kInfinity;
  }
  stretch = sums.largest(stretch);
  return stretch < kInfinity ? stretch : 1;
}

/// The largest violation of a row, and whether every row is met as far as verify demands.
Certifier::Feasibility Certifier::feasibility(const MarginProblem& problem, const RowSums& sums, const RowMatrix& W) {
  Feasibility result;
  double scale = 1;     // the largest |b|, which is 1 but for equations to given numbers
  double weights = -1;  // ‖W‖_F, computed when a row needs it
  for (Index k = 0; k < problem.rows(); ++k) scale = std::max(scale, std::abs(problem.rhs(k)));
  scale = sums.largest(scale);
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      const double rhs = problem.rhs(k), slack = measure_.values()(k) - rhs;
      const double missing = problem.equal(k) ? std::abs(slack) : -slack;
      if (missing <= 0) continue;
      if (!(missing <= result.violation)) result.violation = missing;  // takes NaN too
      if (rhs != 0 && missing <= kRowTolerance * scale) continue;
      if (weights < 0) weights = norm_of(W);
      const double reach = size_of(problem, group, k) * weights;
      const double allowed =
          rhs == 0 ? kRowTolerance * reach : std::min(kRowRounding * reach, kMostMissing * std::abs(rhs));
      if (!(missing <= allowed)) result.met = false;
    }
  }
  result.violation = sums.largest(result.violation);
  result.met = !sums.any(!result.met);
  return result;
}

/// ‖δ_k‖ ‖ζ_k‖
double Certifier::size_of(const MarginProblem& problem, const MarginGroup& group, Index k) {
  delta_.resize(problem.d());
  problem.delta(group, k, delta_.data());
  return norm_of(delta_) * norm_of(ConstVector(group.z, problem.dz()));
}

/// Scales the multipliers to ‖A(dual)‖ = 1 and computes the bound that they prove.
void Certifier::find_bound(const MarginProblem& problem, const RowSums& sums, double tolerance,
                           MarginSolution& solution) {
  measure_.take(problem, sums, solution.W, solution.dual);
  double norm = dual_norm(solution.norm, tolerance);
  if (norm > 0) {
    solution.dual /= norm;
    if (measure_.arithmetic() == RowMeasure::Arithmetic::fast) {
      norm = 1;
    } else {
      measure_.take(problem, sums, solution.W, solution.dual);  // rounding the multipliers moved A
      norm = dual_norm(solution.norm, tolerance);
    }
  }
  if (std::abs(norm - 1) <= kScaling) {
    solution.dual_objective = std::max(0.0, weighted_rhs(problem, sums, solution.dual) / norm);
  } else {  // no multipliers, or A(dual) cancels to rounding: they prove nothing
    solution.dual.setZero();
    solution.dual_objective = 0;
  }
}

/// Where rows differ much in size, scaling W up for the few that rounding leaves short would cost the tolerance.
/// Instead W moves onto each of them in turn, by no more than rounding.
void Certifier::mend(const MarginProblem& problem, const RowSums& sums, double tolerance, MarginSolution& solution) {
  const double weights = norm_of(solution.W);
  for (int round = 0; round < kMendings && needed_stretch(problem, sums) > 1 + kProofShare * tolerance; ++round) {
    for (const MarginGroup& group : problem.groups()) {
      const ConstVector zeta(group.z, problem.dz());
      for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
        const double missing = problem.rhs(k) - measure_.values()(k);
        if (problem.equal(k) || problem.rhs(k) <= 0 || !(missing > 0)) continue;
        const double size = size_of(problem, group, k), step = missing / size + 2 * kEpsilon * weights;
        if (!(missing <= kMendable * size * weights)) return;  // not rounding
        solution.W.noalias() += (step / size) * delta_ * zeta.transpose();
      }
    }
    measure_.take(problem, sums, solution.W, solution.dual);
  }
}

/// Scales W up until it meets every row ≥ 1 and ‖W‖ is not below the bound: a W that meets all rows is at least that
/// large, so only rounding can have left it smaller. False: the bound is above ‖W‖ by more than rounding, which proves
/// that W does not meet the rows.
bool Certifier::restore(const MarginProblem& problem, const RowSums& sums, double tolerance, MarginSolution& solution) {
  const bool fast = measure_.arithmetic() == RowMeasure::Arithmetic::fast;
  if (!fast && !solution.norm.is_nuclear()) mend(problem, sums, tolerance, solution);
  for (int round = 0; round < kStretches; ++round) {  // rounding of the scaled W can leave rows short again
    const double stretch = needed_stretch(problem, sums);
    if (stretch == 1) break;
    stretch_weights(stretch, solution);
    if (fast) {
      measure_.stretch(stretch);
      break;
    }
    measure_.take(problem, sums, solution.W, solution.dual);
  }
  const double rounding = fast ? kEpsilon * measure_.size() : measure_.error();  // of ‖A(dual)‖ and of the bound
  double least = solution.dual_objective * (1 + 2 * rounding / measure_.norm() - kRoundedSize);
  if (solution.norm.is_nuclear() && least > 0)  // the true bound may be higher than the proven one
    least *= spectrum_.bound() / spectrum_.values()(0);
  const double objective = primal_norm(solution);
  if (!(objective < least)) return true;
  if (sums.any(has_given_numbers(problem))) return least <= objective * (1 + tolerance);  // they fix the length of W
  const bool consistent = least <= objective * (1 + std::clamp(tolerance, kLeastLift, kLargestLift));
  if (!consistent && !(least <= 2 * objective)) {  // too far off to be shown together
    solution.dual.setZero();
    solution.dual_objective = 0;
    return false;
  }
  stretch_weights(least / objective, solution);
  if (fast) {
    measure_.stretch(least / objective);
  } else {
    measure_.take(problem, sums, solution.W, solution.dual);
  }
  return consistent;
}

void Certifier::certify(const MarginProblem& problem, double tolerance, MarginSolution& solution) {
  const RowSums sums(problem, shared_);
  measure_.start(RowMeasure::Arithmetic::fast);
  clip(problem, solution.dual);
  if (solution.norm.is_nuclear()) stretch_weights(1, solution);
  find_bound(problem, sums, tolerance, solution);
  const bool consistent = restore(problem, sums, tolerance, solution);

  solution.objective = primal_norm(solution);
  solution.dual_objective = std::min(solution.dual_objective, solution.objective);
  const Feasibility found = feasibility(problem, sums, solution.W);
  const bool feasible = consistent && found.met;
  solution.violation = found.violation;
  solution.gap = feasible ? relative_gap(solution.objective, solution.dual_objective) : kNaN;
  solution.residual = 0;
  solution.support = 0;
  solution.slack.resize(problem.rows());
  for (Index k = 0; k < problem.rows(); ++k) {
    solution.slack(k) = measure_.values()(k) - problem.rhs(k);
    if (std::abs(solution.slack(k)) <= kSupportTolerance * std::max(1.0, std::abs(problem.rhs(k)))) ++solution.support;
  }
  solution.support = sums.count(solution.support);
  const double short_by =
      needed_stretch(problem, sums) - 1 + measure_.value_error();  // W (1 + short_by) meets the rows
  const bool proven = feasible && solution.gap + short_by <= tolerance && std::isfinite(solution.objective) &&
                      !sums.any(!solution.dual.allFinite());
  solution.status = proven ? MarginStatus::optimal : MarginStatus::stalled;
  if (solution.norm.is_nuclear()) solution.rank = rank_.certify(problem, sums, solution, spectrum_);
}

bool Certifier::is_near_homogeneous(const MarginProblem& problem, double tolerance, const MarginSolution& solution) {
  const double weights = norm_of(solution.W);
  unit_delta_.resize(kMostGram, problem.d());
  unit_zeta_.resize(kMostGram, problem.dz());
  Index count = 0;
  double missing = 0;  // squared
  for (const MarginGroup& group : problem.groups()) {
    const ConstVector zeta(group.z, problem.dz());
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (problem.rhs(k) != 0) continue;
      const double size = size_of(problem, group, k);
      if (size == 0 || (!problem.equal(k) && solution.slack(k) > kTouching * size * weights)) continue;
      if (count == kMostGram) return false;
      unit_delta_.row(count) = delta_.transpose() / norm_of(delta_);
      unit_zeta_.row(count) = zeta.transpose() / norm_of(zeta);
      missing += std::pow(solution.slack(k) / size, 2) + std::pow(kEpsilon * weights, 2);
      ++count;
    }
  }
  const auto delta = unit_delta_.topRows(count), zeta = unit_zeta_.topRows(count);
  gram_ = (delta * delta.transpose()).cwiseProduct(zeta * zeta.transpose());
  // Rows of L and of L⁻¹ one by one. The nearest matrix that meets the rows is at most ‖L⁻¹‖ ‖missing‖ away; pivots
  // alone would not tell, as chains of rows can be dependent with none of them small.
  inverse_.setZero(count, count);
  double square = 0;  // ‖L⁻¹‖_F²
  for (Index j = 0; j < count; ++j) {
    for (Index i = 0; i < j; ++i)
      gram_(j, i) = (gram_(j, i) - gram_.row(j).head(i).dot(gram_.row(i).head(i))) / gram_(i, i);
    const double pivot = gram_(j, j) - gram_.row(j).head(j).squaredNorm();
    if (!(pivot * kIndependent > 1)) return false;
    gram_(j, j) = std::sqrt(pivot);
    inverse_.row(j).head(j).noalias() =
        -gram_.row(j).head(j) * inverse_.topLeftCorner(j, j).triangularView<Eigen::Lower>() / gram_(j, j);
    inverse_(j, j) = 1 / gram_(j, j);
    square += inverse_.row(j).head(j + 1).squaredNorm();
    if (!(square < kIndependent)) return false;
  }
  // So near that neither the norm nor rows ≥ 1 notice.
  return std::sqrt(square * missing) * std::max(1.0, measure_.reach()) <= kProofShare * tolerance * weights;
}

bool Certifier::certify_conflict(const MarginProblem& problem, MarginSolution& solution) {
  const RowSums sums(problem, shared_);
  if (sums.shared()) throw NeedsAllRows{};
  clip(problem, solution.dual);
  const double total = weighted_rhs(problem, sums, solution.dual);
  if (!(total > 0) || !std::isfinite(total)) return false;
  solution.dual /= total;
  if (!solution.dual.allFinite()) return false;
  double alone = 0;  // ω of kInfeasibleFactor: the norm that the hardest of these rows needs alone
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (problem.rhs(k) == 0 || solution.dual(k) == 0) continue;
      const double size = size_of(problem, group, k);
      if (size > 0) alone = std::max(alone, std::abs(problem.rhs(k)) / size);
    }
  }
  solution.W.setZero(problem.d(), problem.dz());
  const double enough = 1 / (kInfeasibleFactor * alone);  // largest ‖A(dual)‖ of a certificate; infinite if alone is 0
  measure_.start(RowMeasure::Arithmetic::extended);
  measure_.take(problem, sums, solution.W, solution.dual, enough);
  solution.residual = measure_.norm();
  solution.status = MarginStatus::infeasible;
  solution.slack.resize(problem.rows());
  for (Index k = 0; k < problem.rows(); ++k) solution.slack(k) = -problem.rhs(k);
  solution.objective = solution.dual_objective = solution.gap = solution.violation = kNaN;
  solution.support = 0;
  conflict_factor_ = kInfeasibleFactor * enough / (solution.residual + measure_.error());
  return conflict_factor_ >= kInfeasibleFactor;
}

}  // namespace attsvm::internal
