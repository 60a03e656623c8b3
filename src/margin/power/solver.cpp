#include "margin/power/solver.h"

#include <cmath>

#include "base/blas.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kWideWork = 100'000'000;  // largest rows² · (rows + unknowns) for extended precision, per iteration
constexpr double kSure = 1e-2;            // share of the tolerance: a smaller gap survives any later rounding
constexpr double kCentrality = 0.1, kMoreCentral = 0.3;  // of the start, and of a second start if the first fails
constexpr double kFirstPower = 8, kNextPower = 4;  // higher powers are reached from this one by factors of at most that

}  // namespace

/// From near_W_ and near_lambda_ to the answer in this norm, which replaces them. False: asked to stop.
template <class Real>
bool PowerSolver::follow(PowerPath<Real>& path, const MarginProblem& problem, const Norm& norm, double centrality,
                         const std::function<bool(const SolveProgress&)>& stop) {
  path.load(problem, norm, near_W_, near_lambda_, set_.list(), centrality);
  const Index before = iterations_;
  const bool done = path.follow([&](double objective, double bound) {
    return stop({.iteration = before + path.iterations(), .objective = objective, .dual_objective = bound});
  });
  iterations_ += path.iterations();
  path.write(near_W_, near_lambda_);
  return done;
}

/// Keeps the answer of a path if it is better. High powers are approached from lower ones: the answers of both are
/// close, but the path cannot start far from its optimum. False: asked to stop.
template <class Real>
bool PowerSolver::approach(PowerPath<Real>& path, const MarginProblem& problem, const Norm& norm, double centrality,
                           const std::function<bool(const SolveProgress&)>& stop) {
  Norm step = norm;
  bool done = true;
  for (step.power = std::min(norm.power, kFirstPower);; step.power = std::min(norm.power, kNextPower * step.power)) {
    done = follow(path, problem, step, centrality, stop);
    if (!done || step.power == norm.power) break;
  }
  if (step.power == norm.power && path.gap() < gap_) {
    gap_ = path.gap();
    W_ = near_W_;
    lambda_ = near_lambda_;
  }
  return done;
}

PowerSolver::Outcome PowerSolver::solve(const MarginProblem& problem, const Norm& norm, const MarginSolution& frobenius,
                                        double tolerance, const std::function<bool(const SolveProgress&)>& stop) {
  const SingleThreadBlas blas;
  iterations_ = 0;
  W_ = frobenius.W;
  lambda_ = frobenius.dual;
  gap_ = kInfinity;
  method_ = "Frobenius answer";
  if (frobenius.W.isZero(0)) return Outcome::converged;
  if (!set_.choose(problem, frobenius.slack, frobenius.dual)) return Outcome::stalled;
  method_ = "interior point";
  near_W_ = frobenius.W;
  near_lambda_ = frobenius.dual;
  for (;;) {
    gap_ = kInfinity;
    if (!approach(path_, problem, norm, kCentrality, stop)) return Outcome::stopped;
    if (!set_.add_violated(problem, W_)) break;
  }
  const Index m = set_.count(problem), unknowns = problem.d() * problem.dz();
  if (gap_ > kSure * tolerance && m * m * (m + unknowns) <= kWideWork) {
    method_ = "interior point in extended precision";
    near_W_ = frobenius.W;
    near_lambda_ = frobenius.dual;
    if (!approach(wide_path_, problem, norm, kMoreCentral, stop)) return Outcome::stopped;
  }
  return gap_ <= tolerance ? Outcome::converged : Outcome::stalled;
}

void PowerSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = W_;
  lambda = lambda_;
}

}  // namespace attsvm::internal
