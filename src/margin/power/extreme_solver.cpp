#include "margin/power/extreme_solver.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/blas.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kIterations = 100;
constexpr int kPatience = 40;  // iterations that may pass before the gap falls by the factor kProgress
constexpr double kProgress = 0.9;
// Gaps of the interior point method below which the face is tried: in the spectral norm, in others where rows and
// entries determine a vertex, and where they do not.
constexpr double kTrySpectral = 1e-2, kTryVertex = 1e-3, kTryOpen = 1e-6;
constexpr Index kCheapFace = 300;         // rows up to which the face is tried at every step; else after a failure
constexpr double kLater = 0.03;           // only when the gap has fallen by this factor
constexpr Index kToRounding = 1500;       // rows of problems that are solved to rounding whatever the tolerance
constexpr double kBelow = 0.1;            // share of the tolerance at which larger ones end
constexpr double kAccurate = 1e-11;       // gap of an answer on the right face
constexpr double kSure = 1e-2;            // share of the tolerance: a smaller gap survives any later rounding
constexpr Index kWideWork = 100'000'000;  // largest rows² · (rows + unknowns) for extended precision, per iteration

/// Between the bound of λ and W, scaled to meet the rows; violations of other rows count too.
template <class Real>
double gap_of(const PowerRows<Real>& rows, const Norm& norm, const PowerVector<Real>& w,
              const PowerVector<Real>& lambda) {
  PowerVector<Real> value, a;
  rows.products().values(w, value);
  rows.products().weigh(lambda, a);
  const Real heaviest = lambda.cwiseAbs().maxCoeff();
  Real stretch = 1, violation = 0;
  for (Index k = 0; k < rows.count(); ++k) {
    const Real missing = rows.b()(k) - value(k);
    if (rows.equal(k)) {
      violation = std::max(violation, std::abs(missing));
      continue;
    }
    violation = std::max(violation, -lambda(k) / heaviest);
    if (rows.b()(k) <= 0) {
      violation = std::max(violation, missing);
    } else {
      stretch = std::max(stretch, value(k) > 0 ? rows.b()(k) / value(k) : std::numeric_limits<Real>::infinity());
    }
  }
  const auto matrix = [&](const PowerVector<Real>& x) {
    return RowMatrix(Eigen::Map<const PowerMatrix<Real>>(x.data(), rows.left(), rows.right()).template cast<double>());
  };
  const auto objective = static_cast<double>(stretch) * norm.of(matrix(w));
  const double bound = static_cast<double>(rows.b().dot(lambda)) / norm.dual_of(matrix(a));
  return std::abs(objective - bound) / objective + static_cast<double>(violation);
}

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
  if (!set_.choose(problem, frobenius.slack, frobenius.dual)) return Outcome::stalled;
  goal_ = problem.rows() > kToRounding ? kBelow * tolerance : 0;
  for (;;) {
    gap_ = kInfinity;
    unique_.reset();
    if (!descend(tools_, problem, norm, frobenius, stop)) return Outcome::stopped;
    if (!set_.add_violated(problem, W_)) break;
  }
  const Index m = set_.count(problem), unknowns = problem.d() * problem.dz();
  if (gap_ > kSure * tolerance && m * m * (m + unknowns) <= kWideWork &&
      !descend(wide_tools_, problem, norm, frobenius, stop))
    return Outcome::stopped;
  return gap_ <= tolerance ? Outcome::converged : Outcome::stalled;
}

/// Follows the path until the face is found or rounding ends it, and keeps the best answer. False: asked to stop.
template <class Real>
bool ExtremeSolver::descend(Tools<Real>& tools, const MarginProblem& problem, const Norm& norm,
                            const MarginSolution& frobenius, const std::function<bool(const SolveProgress&)>& stop) {
  constexpr double kRounding = 200 * static_cast<double>(std::numeric_limits<Real>::epsilon());
  tools.rows.load(problem, norm.family, static_cast<Real>(norm.of(frobenius.W)), set_.list());
  ExtremePath<Real>& path = tools.path;
  path.load(tools.rows, norm, frobenius.W, frobenius.dual);
  double best = kInfinity, try_face = norm.is_entrywise() ? kTryVertex : kTrySpectral;
  int patience = kPatience;
  for (const Index first = iterations_;; ++iterations_) {
    if (path.gap() < kProgress * best) patience = kPatience;
    best = std::min(best, path.gap());
    if (path.gap() < gap_) {
      gap_ = path.gap();
      method_ = std::is_same_v<Real, double> ? "interior point" : "interior point in extended precision";
      tools.rows.weights_out(path.w(), W_);
      tools.rows.duals_out(path.lambda(), dual_);
    }
    const auto bound = static_cast<double>(path.bound() * tools.rows.scale());
    if (stop({.iteration = iterations_, .objective = kInfinity, .dual_objective = bound})) return false;
    if (path.gap() < try_face) {
      if (finish(tools, norm, norm.is_entrywise() && path.gap() > kTryOpen)) return true;
      if (tools.rows.count() > kCheapFace) try_face = kLater * path.gap();
    }
    if (best < std::max(kRounding, goal_) || iterations_ - first == kIterations || --patience == 0 || !path.step())
      return true;
  }
}

/// Newton on the face near the present point of the path. False: it does not lead to an optimum.
template <class Real>
bool ExtremeSolver::finish(Tools<Real>& tools, const Norm& norm, bool vertex) {
  ExtremePath<Real>& path = tools.path;
  ExtremeFace<Real>& face = tools.face;
  if (!face.solve(tools.rows, norm, path.w(), path.lambda(), path.radius(), path.ratio(), vertex, path.equations()))
    return false;
  const double gap = gap_of(tools.rows, norm, face.w(), face.lambda());
  if (!(gap < kAccurate)) return false;
  gap_ = gap;
  method_ = std::is_same_v<Real, double> ? "interior point, Newton on the face"
                                         : "interior point, Newton on the face, in extended precision";
  tools.rows.weights_out(face.w(), W_);
  tools.rows.duals_out(face.lambda(), dual_);
  unique_ = face.unique();
  return true;
}

void ExtremeSolver::write(RowMatrix& W, Eigen::VectorXd& lambda) const {
  W = W_;
  lambda = dual_;
}

}  // namespace attsvm::internal
