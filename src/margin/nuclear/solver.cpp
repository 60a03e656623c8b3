#include "margin/nuclear/solver.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/blas.h"
#include "base/decompositions.h"
#include "margin/rows/tolerances.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kIterations = 100;        // of the interior point method
constexpr Index kFewRows = 64;            // up to this the interior point method takes all rows
constexpr Index kBarrierRows = 600;       // from here on the working set is faster than the barrier path
constexpr Index kBarrierSteps = 16;       // seven steps are usual at (6,8,10)
constexpr Index kBarrierTries = 3;        // of the face: measured as enough on 499 of 500 draws (docs/algorithms.md)
constexpr double kTryBarrier = 0.05;      // gap of the barrier path from which Newton's method on the face is tried
constexpr Index kAtOnce = 1000;           // most rows that join at a time, or twice the unknowns if that is less
constexpr double kNear = 0.25;            // slack of the rows that the interior point method starts with
constexpr double kNearlyViolated = 0.05;  // slack, of the largest right-hand side, with which rows join
constexpr double kNearlyAll = 0.8;        // share of the rows from which it takes all of them
constexpr double kTryFace = 1e-2;         // gap from which Newton's method on the face is tried
constexpr double kRounding = 5e-13;       // gap below which the interior point method cannot get
constexpr double kShareOfGap = 0.1;       // nuclear mass, relative to the gap, that counts as zero

/// A bound on the nuclear norm of a W that meets the rows.
double feasible_objective(const MarginSolution& frobenius) {
  return frobenius.W.stableNorm() * std::sqrt(static_cast<double>(std::min(frobenius.W.rows(), frobenius.W.cols())));
}

/// How many singular values, largest first, are not noise. The others count as zero for verify, or sum to at most
/// `noise`.
Index directions(const Eigen::VectorXd& sigma, double noise) {
  Index r = sigma.size();
  for (double tail = 0; r > 0; --r) {
    tail += sigma(r - 1);
    if (!(sigma(r - 1) <= kSingularNoise * sigma(0) || tail <= noise)) break;
  }
  return r;
}

}  // namespace

void balanced_factors(const RowMatrix& W, RowMatrix& K, RowMatrix& Q) {
  const ThinSvd svd = thin_svd(W);
  const Index r = directions(svd.sigma, 0);
  const Eigen::VectorXd root = svd.sigma.head(r).cwiseSqrt();
  K = svd.U.leftCols(r) * root.asDiagonal();
  Q = svd.V.leftCols(r) * root.asDiagonal();
}

NuclearSolver::Outcome NuclearSolver::solve(const MarginProblem& problem, const MarginSolution& frobenius,
                                            double tolerance, const std::function<bool(const SolveProgress&)>& stop,
                                            const IndexList* only) {
  problem_ = &problem;
  iterations_ = 0;
  const double size = frobenius.W.stableNorm();
  const bool vectors = problem.d() == 1 || problem.dz() == 1 || problem.groups().size() == 1;
  if (size == 0 || vectors) {  // the norms agree on matrices of rank one
    take_frobenius(frobenius);
    method_ = "rank one";
    return Outcome::converged;
  }
  rows_.load(problem, size, only);
  std::optional<SingleThreadBlas> blas;
  if (needs_blas()) blas.emplace();
  if (rows_.count() <= kBarrierRows && follow_barrier(frobenius, stop)) return Outcome::converged;
  rows_.weights_in(frobenius.W, start_);
  choose_near(frobenius);
  Index count = -1;  // rows that the interior point method took last
  while (near_.size() < rows_.count() && near_.size() > count && near_.size() <= kMostRows) {
    count = near_.size();
    some_.take(rows_, near_);
    const Outcome outcome = descend(some_, frobenius, tolerance, stop);
    if (outcome != Outcome::stalled) return outcome;
    add_violated();
  }
  if (rows_.count() > kMostRows) {
    if (near_.size() == count) {  // no other row is violated, so its point is an answer
      take_interior_point();
    } else {
      take_frobenius(frobenius);
    }
    return Outcome::stalled;
  }
  near_.clear();
  for (Index k = 0; k < rows_.count(); ++k) near_.push(k);
  return descend(rows_, frobenius, tolerance, stop);
}

/// Follows the barrier path from the Frobenius answer until Newton's method on the face succeeds. False: it does not.
bool NuclearSolver::follow_barrier(const MarginSolution& frobenius,
                                   const std::function<bool(const SolveProgress&)>& stop) {
  lambda_.grow(rows_.count());
  rows_.duals_in(frobenius.dual, lambda_.data());
  for (Index k = 0; k < rows_.count(); ++k) lambda_[k] /= rows_.weight_scale();
  if (!barrier_.start(rows_, lambda_.data())) return false;
  const double feasible = feasible_objective(frobenius);
  for (Index tries = 0; tries < kBarrierTries && iterations_ < kBarrierSteps; ++iterations_) {
    if (stop({.iteration = iterations_,
              .objective = feasible,
              .dual_objective = barrier_.bound() * rows_.weight_scale()}))
      return false;
    if (barrier_.central() && barrier_.gap() < kTryBarrier) {
      ++tries;
      barrier_.weights(W_);
      if (face_.solve(rows_, W_, barrier_.lambda(), balance(rows_, barrier_.lambda(), barrier_.slack()))) {
        method_ = "barrier path, Newton on the face";
        take_face();
        return true;
      }
    }
    if (!barrier_.step()) return false;
  }
  return false;
}

/// Chooses the rows that the Frobenius answer meets with little slack; they contain most rows that are active in the
/// nuclear answer. Takes all rows if that adds few, and only those of least slack if there are many.
void NuclearSolver::choose_near(const MarginSolution& frobenius) {
  near_.clear();
  const bool few = rows_.count() <= kFewRows;
  value_.grow(rows_.count());
  for (Index k = 0; k < rows_.count(); ++k) {
    const Index row = rows_.row(k);
    value_[k] = frobenius.slack(row) / std::max(1.0, std::abs(problem_->rhs(row)));
  }
  const double within = lowest(kNear);
  const auto choose = [&](bool carriers) {
    near_.clear();
    for (Index k = 0; k < rows_.count(); ++k) {
      const bool carries = carriers && frobenius.dual(rows_.row(k)) != 0;
      if (few || rows_.equal(k) || carries || value_[k] <= within) near_.push(k);
    }
  };
  choose(true);
  if (near_.size() > kMostRows) choose(false);  // too many nonzero multipliers do not tell which rows matter
  if (static_cast<double>(near_.size()) < kNearlyAll * static_cast<double>(rows_.count())) return;
  near_.clear();
  for (Index k = 0; k < rows_.count(); ++k) near_.push(k);
}

/// `limit`, or less if too many rows have a value below it to join at once.
double NuclearSolver::lowest(double limit) {
  if (rows_.count() <= kMostRows) return limit;
  sorted_.grow(rows_.count());
  std::copy_n(value_.data(), rows_.count(), sorted_.data());
  const Index most = std::min(kAtOnce, 2 * rows_.left() * rows_.right());
  std::nth_element(sorted_.data(), sorted_.data() + most, sorted_.data() + rows_.count());
  return std::min(limit, sorted_[most]);
}

/// Adds to near_ the rows that the W of the interior point method violates, and if there are many rows, those that it
/// nearly violates, which saves later rounds. False: none is violated.
bool NuclearSolver::add_violated() {
  interior_.weights(W_);
  value_.grow(rows_.count());
  rows_.values(W_, value_.data());
  double asked = 0;
  for (Index k = 0; k < rows_.count(); ++k) {
    value_[k] -= rows_.rhs(k);
    asked = std::max(asked, rows_.rhs(k));
  }
  const double below = lowest(rows_.count() > kMostRows ? kNearlyViolated * asked : 0);
  next_.clear();
  bool violated = false;
  Index member = 0;
  for (Index k = 0; k < rows_.count(); ++k) {
    const bool in = near_.meets(k, member);
    violated = violated || (!in && value_[k] < 0);
    if (in || value_[k] < below) next_.push(k);
  }
  if (violated) next_.swap(near_);
  return violated;
}

/// Runs the interior point method on `rows`, which are the rows near_ of all. Newton's method on the face uses all rows
/// and adds violated ones. Returns stalled on a part of the rows if others are needed.
NuclearSolver::Outcome NuclearSolver::descend(NuclearRows& rows, const MarginSolution& frobenius, double tolerance,
                                              const std::function<bool(const SolveProgress&)>& stop) {
  const bool all = rows.count() == rows_.count();
  lambda_.grow(rows_.count());
  rows_.duals_in(frobenius.dual, lambda_.data());
  for (Index k = 0; k < rows.count(); ++k) lambda_[k] = lambda_[near_[k]];
  interior_.start(rows, start_, lambda_.data());
  const double feasible = feasible_objective(frobenius);
  for (const Index first = iterations_;; ++iterations_) {
    if (stop({.iteration = iterations_,
              .objective = feasible,
              .dual_objective = interior_.bound() * rows_.weight_scale()})) {
      take_interior_point();
      return Outcome::stopped;
    }
    const double gap = interior_.gap();
    if (gap < kTryFace) {
      interior_.weights(W_);
      spread_dual();
      if (face_.solve(rows_, W_, lambda_.data(), balance(rows, interior_.lambda(), interior_.slack()))) {
        method_ = "interior point, Newton on the face";
        take_face();
        return Outcome::converged;
      }
      if (!all && add_violated()) return Outcome::stalled;
    }
    if (gap < kRounding || iterations_ - first == kIterations || !interior_.step()) {
      if (!all) return Outcome::stalled;
      take_interior_point();
      return gap < tolerance ? Outcome::converged : Outcome::stalled;
    }
  }
}

/// Sets lambda_ to the multipliers of the interior point method, for all rows.
void NuclearSolver::spread_dual() {
  std::fill_n(lambda_.data(), rows_.count(), 0.0);
  for (Index k = 0; k < near_.size(); ++k) lambda_[near_[k]] = interior_.lambda()[k];
}

bool NuclearSolver::refine(const MarginProblem& problem, const MarginSolution& near) {
  problem_ = &problem;
  iterations_ = 0;
  rows_.load(problem, near.W.stableNorm());
  std::optional<SingleThreadBlas> blas;
  if (needs_blas()) blas.emplace();
  rows_.weights_in(near.W, W_);
  const Index count = rows_.count();
  lambda_.grow(count);
  slack_.grow(count);
  rows_.values(W_, slack_.data());
  rows_.duals_in(near.dual, lambda_.data());
  for (Index k = 0; k < count; ++k) slack_[k] -= rows_.rhs(k);
  if (count == 0 || !face_.solve(rows_, W_, lambda_.data(), balance(rows_, lambda_.data(), slack_.data())))
    return false;
  iterations_ = face_.steps();
  method_ = "Newton on the face";
  take_face();
  return true;
}

/// Whether any product or factorisation is large enough for OpenBLAS.
bool NuclearSolver::needs_blas() const { return std::max(rows_.count(), rows_.left() + rows_.right()) >= kOwnLoops; }

/// The ratio of multiplier to slack that separates active rows from others.
double NuclearSolver::balance(const NuclearRows& rows, const double* lambda, const double* slack) {
  double heaviest = 0, widest = 0;
  for (Index k = 0; k < rows.count(); ++k) {
    if (rows.equal(k)) continue;
    heaviest = std::max(heaviest, lambda[k]);
    widest = std::max(widest, slack[k]);
  }
  return widest > 0 ? heaviest / widest : 1;
}

/// Takes the Frobenius answer unchanged.
void NuclearSolver::take_frobenius(const MarginSolution& frobenius) {
  method_ = "Frobenius answer";
  dual_ = frobenius.dual;
  balanced_factors(frobenius.W, K_, Q_);
}

void NuclearSolver::take_factors(const Eigen::MatrixXd& U, const Eigen::VectorXd& sigma, const Eigen::MatrixXd& V,
                                 double noise) {
  const Index r = directions(sigma, noise);
  const Eigen::VectorXd root = (sigma.head(r) * rows_.weight_scale()).cwiseSqrt();
  rows_.left_out(U.leftCols(r) * root.asDiagonal(), K_);
  rows_.right_out(V.leftCols(r) * root.asDiagonal(), Q_);
}

void NuclearSolver::take_face() {
  take_factors(face_.U(), face_.sigma(), face_.V(), 0);
  rows_.duals_out(face_.lambda(), dual_);
}

/// Takes the point of the interior point method as the answer, without directions whose nuclear mass is well below the
/// gap. Leaving them out changes row values by that much, relative to the right-hand sides.
void NuclearSolver::take_interior_point() {
  method_ = "interior point";
  interior_.weights(W_);
  const ThinSvd svd = thin_svd(W_);
  double least = 1;
  for (Index k = 0; k < rows_.count(); ++k) {
    if (rows_.rhs(k) > 0) least = std::min(least, rows_.rhs(k));
  }
  const double noise = kShareOfGap * std::min(interior_.gap(), 1.0) * least * svd.sigma.sum();
  take_factors(svd.U, svd.sigma, svd.V, noise);
  spread_dual();
  rows_.duals_out(lambda_.data(), dual_);
}

void NuclearSolver::write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const {
  K = K_;
  Q = Q_;
  lambda = dual_;
}

}  // namespace attsvm::internal
