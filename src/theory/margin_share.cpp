#include <algorithm>

#include "attsvm/theory.h"
#include "base/limits.h"

namespace attsvm {

using namespace internal;

double margin_share(const MarginProblem& problem, const MarginSolution& solution, const RowMatrix& W) {
  const double size = solution.norm.of(W);
  if (solution.status != MarginStatus::optimal || !(size > 0)) return kNaN;
  const Eigen::VectorXd values = problem.values(W);
  double smallest = kInfinity;
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k) && problem.rhs(k) > 0) smallest = std::min(smallest, values(k) / problem.rhs(k));
  }
  return smallest < kInfinity ? smallest / size * solution.objective : kNaN;
}

std::optional<ImpliedNorm> implied_norm(const TrainSettings& settings) {
  const bool factored = settings.param == Parametrization::KQ;
  switch (settings.optimizer) {
    case Optimizer::gd:
    case Optimizer::ngd:
    case Optimizer::polyak:
      if (factored) return ImpliedNorm{Norm::nuclear(), true, "gradient descent on K and Q"};
      return ImpliedNorm{Norm::frobenius(), true, "gradient descent on W"};
    case Optimizer::mirror:
      if (factored) return std::nullopt;
      return ImpliedNorm{Norm::entrywise(settings.power), true, "mirror descent on W"};
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::signum:
    case Optimizer::lion:
      if (factored) return std::nullopt;
      return ImpliedNorm{Norm::largest(), false, "steps of sign or Adam are steepest in the largest entry"};
    case Optimizer::muon:
      return ImpliedNorm{Norm::spectral(), false, "spectral steps"};
    case Optimizer::steepest:
      if (factored && settings.norm == Norm::frobenius())
        return ImpliedNorm{Norm::nuclear(), true, "gradient descent on K and Q"};
      if (factored && settings.norm != Norm::spectral()) return std::nullopt;
      return ImpliedNorm{settings.norm, settings.norm == Norm::frobenius() && !factored,
                         "steepest descent in this norm"};
  }
  throw std::logic_error("unknown optimizer");
}

}  // namespace attsvm
