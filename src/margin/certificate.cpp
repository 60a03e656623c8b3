#include "margin/certificate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/stream_kernels.h"

namespace attsvm {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kCancellation = 1e4;       // terms this much larger than their sum: double is not enough to judge
constexpr double kAllowedViolation = 1e-9;  // what verify accepts, for rows of size one
constexpr double kScaling = 1e-7;           // how far rounding may move ‖A(dual)‖ from 1
constexpr double kProofShare = 1e-2;        // of the tolerance, that the proof of ‖A(dual)‖ may cost
constexpr double kCertificate = 1e-12;      // ‖A(λ)‖ relative to Σ |λ| ‖δ‖ ‖ζ‖

double relative_gap(double objective, double bound) {
  return objective > 0 ? std::max(0.0, objective - bound) / objective : 0;
}

/// ‖M‖_F, also where the squares leave the range of double.
double norm_of(const RowMatrix& M) {
  const double norm = M.norm();
  return norm > 1e-140 && norm < 1e140 ? norm : M.stableNorm();
}

void clip(const MarginProblem& problem, Eigen::VectorXd& dual) {
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k)) dual(k) = std::max(dual(k), 0.0);
  }
}

double weighted_rhs(const MarginProblem& problem, const Eigen::VectorXd& dual) {
  long double sum = 0;
  for (Index k = 0; k < problem.rows(); ++k) sum += static_cast<long double>(problem.rhs(k)) * dual(k);
  return static_cast<double>(sum);
}

}  // namespace

void Certifier::measure(const MarginProblem& problem, const MarginSolution& solution) {
  if (!careful_) measure_fast(problem, solution.W, solution.dual);
  careful_ = careful_ || !(size_ <= kCancellation * norm_ && reach_ <= kCancellation);
  if (careful_) measure_carefully(problem, solution.W, solution.dual);
}

void Certifier::gather(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual, std::size_t begin,
                       std::size_t end, Share& share) {
  const Index d = problem.d(), dz = problem.dz();
  share.u.setZero(pad4(d));
  share.g.resize(kOuters, pad4(d));
  share.z.setZero(kOuters, pad4(dz));
  share.A.setZero(d, pad4(dz));
  share.size = share.reach = 0;
  std::array<const double*, kOuters> g{}, z{};
  Index waiting = 0;
  const auto flush = [&] {
    add_outers(g.data(), z.data(), waiting, d, share.z.cols(), share.A.data());
    waiting = 0;
  };
  for (const MarginGroup& group : problem.groups().subspan(begin, end - begin)) {
    row_dots(W.data(), d, dz, group.z, share.u.data());
    const double* weights = dual.data() + group.first_row;
    double* squares = squares_.data() + group.first_row;
    double* sum = share.g.row(waiting).data();
    measure_rows({group.X, d, group.keep, group.sign, problem.drops(group).data(), group.rows}, share.u.data(), weights,
                 values_.data() + group.first_row, squares, sum);
    double group_size = 0, longest = 0;
    for (Index k = 0; k < group.rows; ++k) {
      longest = std::max(longest, squares[k]);
      if (weights[k] != 0) group_size += std::abs(weights[k]) * std::sqrt(squares[k]);
    }
    double* zeta = share.z.row(waiting).data();
    std::copy_n(group.z, dz, zeta);
    const double z_norm = share.z.row(waiting).norm();
    share.reach = std::max(share.reach, std::sqrt(longest) * z_norm);
    if (group_size == 0) continue;
    share.size += group_size * z_norm;
    g[static_cast<std::size_t>(waiting)] = sum;
    z[static_cast<std::size_t>(waiting)] = zeta;
    if (++waiting == kOuters) flush();
  }
  flush();
}

void Certifier::measure_fast(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual) {
  constexpr Index kRowsAShare = 4096;
  constexpr std::size_t kMostShares = 8;
  const std::size_t groups = problem.groups().size();
  const auto shares = std::clamp<std::size_t>(static_cast<std::size_t>(problem.rows() / kRowsAShare), 1, kMostShares);
  values_.resize(problem.rows());
  squares_.resize(problem.rows());
  if (shares_.size() < shares) shares_.resize(shares);
  const auto work = [&](std::int64_t share) {
    const auto s = static_cast<std::size_t>(share);
    gather(problem, W, dual, groups * s / shares, groups * (s + 1) / shares, shares_[s]);
  };
  if (shares == 1) {
    work(0);  // without what it costs to share
  } else {
    threads_.for_each(static_cast<std::int64_t>(shares), work);
  }
  size_ = shares_[0].size;
  reach_ = shares_[0].reach;
  for (std::size_t s = 1; s < shares; ++s) {
    shares_[0].A += shares_[s].A;
    size_ += shares_[s].size;
    reach_ = std::max(reach_, shares_[s].reach);
  }
  norm_ = norm_of(shares_[0].A);
  reach_ *= norm_of(W);
}

void Certifier::measure_carefully(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual) {
  const Index d = problem.d(), dz = problem.dz();
  wide_u_.resize(d);
  wide_g_.resize(d);
  wide_A_.setZero(d, dz);
  Real size = 0;
  for (const MarginGroup& group : problem.groups()) {
    const auto z = ConstVector(group.z, dz).cast<Real>();
    wide_u_.noalias() = W.cast<Real>() * z;
    wide_g_.setZero();
    Real group_size = 0;
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      const Index t = problem.drop(k);
      Real value = 0, square = 0;
      for (Index j = 0; j < d; ++j) {
        const Real kept = static_cast<Real>(group.sign) * group.X[group.keep * d + j];
        const Real delta = t < 0 ? kept : kept - group.X[t * d + j];
        value += delta * wide_u_(j);
        square += delta * delta;
        wide_g_(j) += dual(k) * delta;
      }
      values_(k) = static_cast<double>(value);
      group_size += std::abs(static_cast<Real>(dual(k))) * std::sqrt(square);
    }
    size += group_size * z.norm();
    wide_A_.noalias() += wide_g_ * z.transpose();
  }
  size_ = static_cast<double>(size);
  norm_ = static_cast<double>(wide_A_.norm());
  if (shares_.empty()) shares_.resize(1);
  shares_[0].A = wide_A_.cast<double>();
}

double Certifier::dual_norm(const Norm& norm, double tolerance) {
  switch (norm.kind) {
    case NormKind::frobenius:
      return norm_;
    case NormKind::nuclear:
      spectrum_.compute(shares_[0].A, kProofShare * tolerance);
      return spectrum_.bound();
    case NormKind::entrywise:
      return norm.dual_of(shares_[0].A);
  }
  throw std::logic_error("unknown norm");
}

double Certifier::primal_norm(const MarginSolution& solution) {
  switch (solution.norm.kind) {
    case NormKind::frobenius:
      return norm_of(solution.W);
    case NormKind::nuclear:  // ½(‖K‖² + ‖Q‖²) is never below ‖KQᵀ‖_*, and equal to it where K and Q are balanced
      return 0.5 * (solution.K.squaredNorm() + solution.Q.squaredNorm());
    case NormKind::entrywise:
      return solution.norm.of(solution.W);
  }
  throw std::logic_error("unknown norm");
}

void Certifier::stretch_weights(double factor, MarginSolution& solution) {
  if (solution.norm.kind == NormKind::nuclear) {
    solution.K *= std::sqrt(factor);
    solution.Q *= std::sqrt(factor);
    solution.W.noalias() = solution.K * solution.Q.transpose();
  } else {
    solution.W *= factor;
  }
}

double Certifier::needed_stretch(const MarginProblem& problem) const {
  double stretch = 1;
  for (Index k = 0; problem.all_positive() && k < problem.rows(); ++k) {
    const double needed = problem.rhs(k) / values_(k);
    if (!(needed > 0 && std::isfinite(needed))) return 1;  // a row that is not positive: no scaling helps
    stretch = std::max(stretch, needed);
  }
  return stretch;
}

double Certifier::violation(const MarginProblem& problem) const {
  double worst = 0;
  for (Index k = 0; k < problem.rows(); ++k) {
    const double slack = values_(k) - problem.rhs(k);
    const double missing = problem.equal(k) ? std::abs(slack) : -slack;
    if (!(missing <= worst)) worst = missing;  // NaN included
  }
  return worst;
}

void Certifier::certify(const MarginProblem& problem, double tolerance, MarginSolution& solution) {
  careful_ = false;
  clip(problem, solution.dual);
  if (solution.norm.kind == NormKind::nuclear) stretch_weights(1, solution);
  measure(problem, solution);
  double norm = dual_norm(solution.norm, tolerance);
  if (norm > 0) {
    solution.dual /= norm;
    if (careful_) {
      measure(problem, solution);  // rounding the multipliers moved A
      norm = dual_norm(solution.norm, tolerance);
    } else {
      norm = 1;
    }
  }
  if (std::abs(norm - 1) <= kScaling) {
    solution.dual_objective = std::max(0.0, weighted_rhs(problem, solution.dual) / norm);
  } else {  // no multipliers, or their terms cancel beyond what rounded numbers can tell: they prove nothing
    solution.dual.setZero();
    solution.dual_objective = 0;
  }

  double stretch = needed_stretch(problem);
  // Rounding alone can cost more than the tolerance where ‖W‖ is huge; W then stays as it is if it meets the rows
  // nearly.
  const bool leave = relative_gap(primal_norm(solution) * stretch, solution.dual_objective) > tolerance &&
                     violation(problem) <= kAllowedViolation / 2;
  for (int round = 0; round < 3 && stretch > 1 && !leave; ++round) {
    stretch_weights(stretch, solution);
    if (!careful_) {
      values_ *= stretch;
      break;
    }
    measure(problem, solution);
    stretch = needed_stretch(problem);
  }

  solution.objective = primal_norm(solution);
  solution.violation = violation(problem);
  solution.gap = relative_gap(solution.objective, solution.dual_objective);
  solution.residual = 0;
  solution.support = 0;
  solution.slack.resize(problem.rows());
  for (Index k = 0; k < problem.rows(); ++k) {
    solution.slack(k) = values_(k) - problem.rhs(k);
    if (std::abs(solution.slack(k)) <= kSupportTolerance * std::max(1.0, std::abs(problem.rhs(k)))) ++solution.support;
  }
  const bool feasible = solution.violation <= kAllowedViolation;
  if (!feasible) solution.gap = kNaN;  // a gap to an infeasible W says nothing
  const bool proven =
      feasible && solution.gap <= tolerance && std::isfinite(solution.objective) && solution.dual.allFinite();
  solution.status = proven ? MarginStatus::optimal : MarginStatus::limit;
  if (solution.norm.kind == NormKind::nuclear) solution.rank = rank_.certify(problem, solution, spectrum_);
}

bool Certifier::certify_conflict(const MarginProblem& problem, MarginSolution& solution) {
  clip(problem, solution.dual);
  const double total = weighted_rhs(problem, solution.dual);
  if (!(total > 0) || !std::isfinite(total)) return false;
  careful_ = true;
  solution.dual /= total;
  solution.W.setZero(problem.d(), problem.dz());
  values_.setZero(problem.rows());
  measure(problem, solution);
  solution.residual = norm_;
  solution.status = MarginStatus::infeasible;
  solution.slack.resize(problem.rows());
  for (Index k = 0; k < problem.rows(); ++k) solution.slack(k) = -problem.rhs(k);
  solution.objective = solution.dual_objective = solution.gap = solution.violation = kNaN;
  solution.support = 0;
  return norm_ <= kCertificate * size_;
}

}  // namespace attsvm
