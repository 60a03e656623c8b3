#include "margin/power/extreme_solver.h"

#include <algorithm>
#include <cmath>

#include "base/blas.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kMostRows = 4000, kMostNumbers = 40'000'000;  // largest problem: rows, and rows times unknowns
constexpr Index kIterations = 100;
constexpr double kTryFace = 1e-3;    // gap of the interior point method below which the face is tried
constexpr double kAccurate = 1e-11;  // gap of an answer on the right face
constexpr double kRounding = 1e-13;  // gap below which the interior point method makes no progress

}  // namespace

ExtremeSolver::Outcome ExtremeSolver::solve(const MarginProblem& problem, const Norm& norm,
                                            const MarginSolution& frobenius, double tolerance,
                                            const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas blas;
  iterations_ = 0;
  unique_.reset();
  W_ = frobenius.W;
  dual_ = frobenius.dual;
  method_ = "Frobenius answer";
  if (frobenius.W.isZero(0)) return Outcome::converged;
  const Index m = problem.rows(), unknowns = problem.d() * problem.dz();
  if (m > kMostRows || m * unknowns > kMostNumbers) return Outcome::stalled;
  rows_.load(problem, norm.family, norm.of(frobenius.W));
  path_.load(rows_, norm, frobenius.W, frobenius.dual);
  return descend(norm, tolerance, stop);
}

ExtremeSolver::Outcome ExtremeSolver::descend(const Norm& norm, double tolerance,
                                              const std::function<bool(const SolveProgress&)>& stop) {
  for (;; ++iterations_) {
    if (stop({.iteration = iterations_, .objective = kInfinity, .dual_objective = path_.bound() * rows_.scale()})) {
      take_path();
      return Outcome::stopped;
    }
    if (path_.gap() < kTryFace && face_.solve(rows_, norm, path_.w(), path_.lambda(), path_.radius(), path_.ratio()) &&
        gap_of(norm, face_.w(), face_.lambda()) < kAccurate) {
      method_ = "interior point, Newton on the face";
      rows_.weights_out(face_.w(), W_);
      rows_.duals_out(face_.lambda(), dual_);
      unique_ = face_.unique();
      return Outcome::converged;
    }
    if (path_.gap() < kRounding || iterations_ == kIterations || !path_.step()) {
      take_path();
      return path_.gap() < tolerance ? Outcome::converged : Outcome::stalled;
    }
  }
}

/// Between the bound of λ and W, scaled to meet the rows; violations of other rows count too.
double ExtremeSolver::gap_of(const Norm& norm, const Eigen::VectorXd& w, const Eigen::VectorXd& lambda) {
  const Eigen::VectorXd value = rows_.R() * w, a = rows_.R().transpose() * lambda;
  double stretch = 1, violation = 0;
  for (Index k = 0; k < rows_.count(); ++k) {
    if (!rows_.equal(k) && rows_.b()(k) > 0)
      stretch = std::max(stretch, value(k) > 0 ? rows_.b()(k) / value(k) : kInfinity);
    if (!rows_.equal(k) && lambda(k) < 0) violation = std::max(violation, -lambda(k) / lambda.cwiseAbs().maxCoeff());
  }
  for (Index k = 0; k < rows_.count(); ++k) {
    const double missing = rows_.b()(k) - value(k);
    if (rows_.equal(k) || rows_.b()(k) <= 0)
      violation = std::max(violation, rows_.equal(k) ? std::abs(missing) : missing);
  }
  const auto matrix = [&](const Eigen::VectorXd& x) {
    return RowMatrix(Eigen::Map<const RowMatrix>(x.data(), rows_.left(), rows_.right()));
  };
  const double objective = stretch * norm.of(matrix(w)), bound = rows_.b().dot(lambda) / norm.dual_of(matrix(a));
  return std::abs(objective - bound) / objective + violation;
}

void ExtremeSolver::take_path() {
  method_ = "interior point";
  rows_.weights_out(path_.w(), W_);
  rows_.duals_out(path_.lambda(), dual_);
}

void ExtremeSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = W_;
  lambda = dual_;
}

}  // namespace attsvm::internal
