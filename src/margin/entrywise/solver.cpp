#include "margin/entrywise/solver.h"

#include <cmath>

#include "base/blas.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

constexpr Index kMostRows = 4000, kMostNumbers = 20'000'000;  // largest problem: rows, and rows times unknowns
constexpr Index kWideWork = 100'000'000;  // largest rows² · (rows + unknowns) for extended precision, per iteration
constexpr double kSure = 1e-2;            // share of the tolerance: a smaller gap survives any later rounding
constexpr double kCentrality = 0.1, kMoreCentral = 0.3;  // of the start, and of a second start if the first fails

}  // namespace

/// Keeps the answer of a path if it is better. False: asked to stop.
template <class Real>
bool EntrywiseSolver::follow(EntrywisePath<Real>& path, const MarginProblem& problem, double power,
                             const MarginSolution& frobenius, double centrality,
                             const std::function<bool(const SolveProgress&)>& stop) {
  path.load(problem, power, frobenius, centrality);
  const Index before = iterations_;
  const bool done = path.follow([&](double objective, double bound) {
    return stop({.iteration = before + path.iterations(), .objective = objective, .dual_objective = bound});
  });
  iterations_ += path.iterations();
  if (path.gap() < gap_) {
    gap_ = path.gap();
    path.write(W_, lambda_);
  }
  return done;
}

EntrywiseSolver::Outcome EntrywiseSolver::solve(const MarginProblem& problem, double power,
                                                const MarginSolution& frobenius, double tolerance,
                                                const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas blas;
  iterations_ = 0;
  W_ = frobenius.W;
  lambda_ = frobenius.dual;
  gap_ = kInfinity;
  method_ = "Frobenius answer";
  if (frobenius.W.isZero(0)) return Outcome::converged;
  const Index m = problem.rows(), unknowns = problem.d() * problem.dz();
  if (m > kMostRows || m * unknowns > kMostNumbers) return Outcome::stalled;
  method_ = "interior point";
  if (!follow(path_, problem, power, frobenius, kCentrality, stop)) return Outcome::stopped;
  if (gap_ > kSure * tolerance && m * m * (m + unknowns) <= kWideWork) {
    method_ = "interior point in extended precision";
    if (!follow(wide_path_, problem, power, frobenius, kMoreCentral, stop)) return Outcome::stopped;
  }
  return gap_ <= tolerance ? Outcome::converged : Outcome::stalled;
}

void EntrywiseSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = W_;
  lambda = lambda_;
}

}  // namespace attsvm::internal
