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
constexpr int kPatience = 20;  // iterations that may pass before the gap falls by the factor kProgress
constexpr double kProgress = 0.9;
constexpr double kTryFace = 1e-3;         // gap of the interior point method below which the face is tried
constexpr double kAccurate = 1e-11;       // gap of an answer on the right face
constexpr double kSure = 1e-2;            // share of the tolerance: a smaller gap survives any later rounding
constexpr Index kWideWork = 100'000'000;  // largest rows² · (rows + unknowns) for extended precision, per iteration

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
  gap_ = kInfinity;
  rows_.load(problem, norm.family, norm.of(frobenius.W));
  path_.load(rows_, norm, frobenius.W, frobenius.dual);
  if (!descend(norm, stop)) return Outcome::stopped;
  if (gap_ > kSure * tolerance && m * m * (m + unknowns) <= kWideWork) {
    wide_rows_.load(problem, norm.family, norm.of(frobenius.W));
    wide_path_.load(wide_rows_, norm, frobenius.W, frobenius.dual);
    if (!descend_wide(stop)) return Outcome::stopped;
  }
  return gap_ <= tolerance ? Outcome::converged : Outcome::stalled;
}

/// Follows a path until rounding ends it, and keeps its best answer if that is better than the present one. `finish` is
/// called near the end and ends it by returning true. False: asked to stop.
template <class Real, class Finish>
bool ExtremeSolver::follow(ExtremePath<Real>& path, const PowerRows<Real>& rows, const Finish& finish,
                           const std::function<bool(const SolveProgress&)>& stop) {
  constexpr double kRounding = 200 * static_cast<double>(std::numeric_limits<Real>::epsilon());
  double best = kInfinity;
  int patience = kPatience;
  for (const Index first = iterations_;; ++iterations_) {
    if (path.gap() < kProgress * best) patience = kPatience;
    best = std::min(best, path.gap());
    if (path.gap() < gap_) {
      gap_ = path.gap();
      method_ = std::is_same_v<Real, double> ? "interior point" : "interior point in extended precision";
      rows.weights_out(path.w(), W_);
      rows.duals_out(path.lambda(), dual_);
    }
    const auto bound = static_cast<double>(path.bound() * rows.scale());
    if (stop({.iteration = iterations_, .objective = kInfinity, .dual_objective = bound})) return false;
    if (path.gap() < kTryFace && finish()) return true;
    if (best < kRounding || iterations_ - first == kIterations || --patience == 0 || !path.step()) return true;
  }
}

bool ExtremeSolver::descend(const Norm& norm, const std::function<bool(const SolveProgress&)>& stop) {
  const auto finish = [&] {
    if (!face_.solve(rows_, norm, path_.w(), path_.lambda(), path_.radius(), path_.ratio())) return false;
    const double gap = gap_of(norm, face_.w(), face_.lambda());
    if (!(gap < kAccurate)) return false;
    gap_ = gap;
    method_ = "interior point, Newton on the face";
    rows_.weights_out(face_.w(), W_);
    rows_.duals_out(face_.lambda(), dual_);
    unique_ = face_.unique();
    return true;
  };
  return follow(path_, rows_, finish, stop);
}

bool ExtremeSolver::descend_wide(const std::function<bool(const SolveProgress&)>& stop) {
  return follow(
      wide_path_, wide_rows_, [] { return false; }, stop);
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

void ExtremeSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = W_;
  lambda = dual_;
}

}  // namespace attsvm::internal
