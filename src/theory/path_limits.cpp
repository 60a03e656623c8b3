#include "theory/path_limits.h"

#include <limits>

#include "attsvm/optimality.h"
#include "attsvm/score.h"

namespace attsvm {
namespace {

double correlation_or_nan(const RowMatrix& W, const MarginSolution& solution) {
  return solution.status == MarginStatus::optimal ? correlation(W, solution.W)
                                                  : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

PathLimits::PathLimits(const AttentionTask& task, Parametrization param, bool joint, Threads& threads)
    : task_(task),
      norm_(param == Parametrization::KQ ? Norm::nuclear() : Norm::frobenius()),
      joint_(joint),
      solver_(threads) {}

const MarginSolution* PathLimits::prediction() {
  if (joint_ || task_.head().kind != HeadKind::linear) return nullptr;
  const Selection best = optimal_tokens(task_).selection;
  std::vector<Index> tokens;
  for (Index i = 0; i < best.queries(); ++i) tokens.push_back(best.first(i));
  const MarginSolution& solution = limit(tokens).weights;
  return solution.status == MarginStatus::optimal && solution.objective > 0 ? &solution : nullptr;
}

const PathLimits::Limit& PathLimits::limit(const std::vector<Index>& selected) {
  const auto [entry, fresh] = known_.try_emplace(selected);
  Limit& limit = entry->second;
  if (!fresh) return limit;
  const Selection selection = Selection::single(selected);
  std::vector<Index> relax;
  if (joint_) {
    solver_.solve(MarginProblem::value(task_, selection), {}, limit.head);
    for (Index i = 0; limit.head.status == MarginStatus::optimal && i < task_.queries(); ++i) {
      if (limit.head.slack(i) > kSupportTolerance) relax.push_back(i);
    }
  }
  limit.relaxed = static_cast<Index>(relax.size());
  solver_.solve(MarginProblem::attention(task_, selection, relax), {.norm = norm_}, limit.weights);
  return limit;
}

void PathLimits::compare(PathPoint& point) {
  const Limit& known = limit(point.selected);
  point.correlation = correlation_or_nan(point.W, known.weights);
  point.relaxed = known.relaxed;
  point.head_correlation = joint_ ? correlation_or_nan(point.v, known.head) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace attsvm
