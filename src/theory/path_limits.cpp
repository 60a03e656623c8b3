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

PathLimits::PathLimits(const AttentionTask& task, Parametrization param, bool joint, const std::function<bool()>& stop,
                       Threads& threads)
    : task_(task),
      norm_(param == Parametrization::KQ ? Norm::nuclear() : Norm::frobenius()),
      joint_(joint),
      stop_(stop),
      solver_(threads) {}

void PathLimits::solve(const MarginProblem& problem, const Norm& norm, MarginSolution& solution) {
  constexpr Index kQuick = 200;  // rows that are solved in no time: points at hand are worth their correlation
  SolveSettings settings{.norm = norm};
  if (problem.rows() > kQuick) settings.progress = [this](const SolveProgress&) { return stop_(); };
  solver_.solve(problem, settings, solution);
}

/// The selection of the largest label margin; empty where there are too many, or no head tells the labels apart.
std::vector<Index> PathLimits::best_labelled() {
  constexpr Index kMost = 1000;
  if (count_selections(task_, kMost) > kMost) return {};
  std::vector<Index> tokens(static_cast<std::size_t>(task_.queries()), 0), best;
  double smallest = std::numeric_limits<double>::infinity();
  MarginSolution head;
  do {
    if (stop_()) return {};
    solve(MarginProblem::value(task_, Selection::single(tokens)), {}, head);
    if (head.status != MarginStatus::optimal || head.objective >= smallest) continue;
    smallest = head.objective;
    best = tokens;
  } while (next_selection(task_, tokens));
  return best;
}

const PathLimits::Limit* PathLimits::prediction() {
  std::vector<Index> tokens;
  if (joint_) {
    tokens = best_labelled();
  } else if (task_.head().kind == HeadKind::linear) {
    const Selection best = optimal_tokens(task_).selection;
    for (Index i = 0; i < best.queries(); ++i) tokens.push_back(best.first(i));
  }
  if (tokens.empty()) return nullptr;
  predicted_ = limit(tokens);
  if (predicted_.relaxed > 0) {
    // On the ray of the relaxed SVM tokens are level, and a descent may leave for others; this one is clear of that.
    solve(MarginProblem::attention(task_, Selection::single(tokens)), norm_, predicted_.weights);
  }
  const bool solved = predicted_.weights.status == MarginStatus::optimal && predicted_.weights.objective > 0;
  return solved ? &predicted_ : nullptr;
}

const PathLimits::Limit& PathLimits::limit(const std::vector<Index>& selected) {
  const auto [entry, fresh] = known_.try_emplace(selected);
  Limit& limit = entry->second;
  if (!fresh) return limit;
  const Selection selection = Selection::single(selected);
  std::vector<Index> relax;
  if (joint_) {
    solve(MarginProblem::value(task_, selection), {}, limit.head);
    for (Index i = 0; limit.head.status == MarginStatus::optimal && i < task_.queries(); ++i) {
      if (limit.head.slack(i) > kSupportTolerance) relax.push_back(i);
    }
  }
  limit.relaxed = static_cast<Index>(relax.size());
  solve(MarginProblem::attention(task_, selection, relax), norm_, limit.weights);
  return limit;
}

void PathLimits::compare(PathPoint& point) {
  const Limit& known = limit(point.selected);
  point.correlation = correlation_or_nan(point.W, known.weights);
  point.relaxed = known.relaxed;
  point.head_correlation = joint_ ? correlation_or_nan(point.v, known.head) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace attsvm
