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
constexpr Index kCheapFace = 300;    // rows up to which the face is tried at every step; else after a failure
constexpr double kLater = 0.03;      // only when the gap has fallen by this factor
constexpr Index kToRounding = 1500;  // rows of problems that are solved to rounding whatever the tolerance
// Gap of the path below which rows that it violates are added, and again when it has fallen by the factor.
constexpr double kWidenBelow = 0.05, kWidenAgain = 0.3;
constexpr double kBelow = 0.3;            // share of the tolerance at which larger ones end
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
  const Index first = set_.count(problem);
  goes_on_ = true;
  if (!cover(problem, norm, frobenius, stop)) return Outcome::stopped;
  goes_on_ = false;
  if (gap_ > tolerance && set_.count(problem) > first && !cover(problem, norm, frobenius, stop))
    return Outcome::stopped;
  const Index m = set_.count(problem), unknowns = problem.d() * problem.dz();
  if (gap_ > kSure * tolerance && m * m * (m + unknowns) <= kWideWork &&
      !descend(wide_tools_, problem, norm, frobenius, true, stop))
    return Outcome::stopped;
  return gap_ <= tolerance ? Outcome::converged : Outcome::stalled;
}

/// Solves over the rows of the set, and adds rows that the answer violates until there are none. False: asked to stop.
bool ExtremeSolver::cover(const MarginProblem& problem, const Norm& norm, const MarginSolution& frobenius,
                          const std::function<bool(const SolveProgress&)>& stop) {
  for (bool afresh = true;; afresh = !goes_on_) {
    gap_ = kInfinity;
    unique_.reset();
    if (!descend(tools_, problem, norm, frobenius, afresh, stop)) return false;
    if (!set_.add_violated(problem, W_)) return true;
  }
}

/// Follows the path until the face is found or rounding ends it, and keeps the best answer. False: asked to stop.
template <class Real>
bool ExtremeSolver::descend(Tools<Real>& tools, const MarginProblem& problem, const Norm& norm,
                            const MarginSolution& frobenius, bool afresh,
                            const std::function<bool(const SolveProgress&)>& stop) {
  constexpr double kRounding = 200 * static_cast<double>(std::numeric_limits<Real>::epsilon());
  ExtremePath<Real>& path = tools.path;
  if (afresh) {
    tools.rows.load(problem, norm.family, static_cast<Real>(norm.of(frobenius.W)), set_.list());
    path.load(tools.rows, norm, frobenius.W, frobenius.dual);
  } else {
    widen(tools, problem, norm);
  }
  double best = kInfinity, widen_below = goes_on_ && set_.list() != nullptr ? kWidenBelow : 0;
  double try_face = norm.is_entrywise() ? kTryVertex : kTrySpectral;
  int patience = kPatience;
  for (const Index first = iterations_;; ++iterations_) {
    if (path.gap_on_path() < widen_below) {
      widen_below = kWidenAgain * path.gap_on_path();
      tools.rows.weights_out(path.w(), path_W_);
      if (set_.add_violated(problem, path_W_)) {
        widen(tools, problem, norm);
        best = gap_ = kInfinity;
      }
    }
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
    if (path.gap_on_path() < try_face) {
      if (finish(tools, norm, norm.is_entrywise() && path.gap_on_path() > kTryOpen)) return true;
      if (tools.rows.count() > kCheapFace) try_face = kLater * path.gap_on_path();
    }
    if (best < std::max(kRounding, goal_) || iterations_ - first == kIterations || --patience == 0 || !path.step())
      return true;
  }
}

/// Takes the rows that were added to the set into the equations, and goes on from the present point.
template <class Real>
void ExtremeSolver::widen(Tools<Real>& tools, const MarginProblem& problem, const Norm& norm) {
  tools.rows.weights_out(tools.path.w(), path_W_);
  tools.rows.duals_out(tools.path.lambda(), path_dual_);
  tools.rows.duals_out(tools.path.slack(), path_slack_);  // and back by duals_in, so the units do not matter
  tools.rows.load(problem, norm.family, tools.rows.scale(), set_.list());
  tools.path.widen(tools.rows, path_W_, path_dual_, path_slack_);
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
