#include "theory/path_limits.h"

#include <algorithm>
#include <limits>

#include "attsvm/task.h"
#include "attsvm/theory.h"
#include "theory/instances.h"
#include "theory/joint_svm.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

double correlation_or_nan(const RowMatrix& W, const MarginSolution& solution) {
  return solution.status == MarginStatus::optimal ? correlation(W, solution.W)
                                                  : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

PathLimits::PathLimits(const AttentionTask& task, Parametrization param, double head_radius,
                       const std::function<bool()>& stop, Threads& threads)
    : task_(task),
      norm_(param == Parametrization::KQ ? Norm::nuclear() : Norm::frobenius()),
      head_radius_(head_radius),
      stop_(stop),
      solver_(threads) {}

const MarginSolution& PathLimits::solve(const MarginProblem& problem, const Norm& norm) {
  constexpr Index kQuick = 200;  // problems of up to this many rows are solved whatever `stop` says
  SolveSettings settings{.norm = norm};
  if (problem.rows() > kQuick) settings.progress = [this](const SolveProgress&) { return stop_(); };
  return solver_.solve(problem, settings);
}

/// The selection of the largest label margin; empty if there are too many selections, or no head separates the labels.
std::vector<Index> PathLimits::best_labelled() {
  constexpr Index kMost = 1000;
  if (count_selections(task_, kMost) > kMost) return {};
  std::vector<Index> tokens = first_selection(task_), best;
  double smallest = std::numeric_limits<double>::infinity();
  do {
    if (stop_()) return {};
    const MarginSolution& head = solve(MarginProblem::value(task_, Selection::single(tokens)), {});
    if (head.status != MarginStatus::optimal || head.objective >= smallest) continue;
    smallest = head.objective;
    best = tokens;
  } while (next_selection(task_, tokens));
  return best;
}

const PathLimits::Limit* PathLimits::prediction() {
  std::vector<Index> tokens;
  if (head_radius_ > 0) {
    tokens = best_labelled();
  } else if (task_.head().kind == HeadKind::linear) {
    tokens = optimal_tokens(task_).selection.firsts();
  }
  if (tokens.empty()) return nullptr;
  predicted_ = limit(tokens);
  if (predicted_.relaxed > 0) {
    // On the ray of the relaxed SVM some tokens are level, and descent may move to others; this SVM relaxes nothing.
    predicted_.weights = solve(MarginProblem::attention(task_, Selection::single(tokens)), norm_);
  }
  const bool solved = predicted_.weights.status == MarginStatus::optimal && predicted_.weights.objective > 0;
  return solved ? &predicted_ : nullptr;
}

const PathLimits::Limit& PathLimits::limit(const std::vector<Index>& selected) {
  const auto [entry, fresh] = known_.try_emplace(selected);
  Limit& limit = entry->second;
  if (!fresh) return limit;
  const Selection selection = Selection::single(selected);
  const auto solve_weights = [&](const MarginProblem& problem) { return solve(problem, norm_); };
  if (head_radius_ > 0) limit.head = solve(MarginProblem::value(task_, selection), {});
  if (head_radius_ > 0 && limit.head.status == MarginStatus::optimal) {
    const std::vector<double> beyond = beyond_margin(limit.head, head_radius_);
    limit.relaxed = std::count_if(beyond.begin(), beyond.end(), [](double one) { return one > 0; });
    limit.weights = solve_joint_svm(task_, selection, beyond, solve_weights).weights;
  } else {
    limit.weights = solve_weights(MarginProblem::attention(task_, selection));
  }
  return limit;
}

void PathLimits::compare(PathPoint& point) {
  const Limit& known = limit(point.selected);
  point.correlation = correlation_or_nan(point.W, known.weights);
  point.relaxed = known.relaxed;
  point.head_correlation =
      head_radius_ > 0 ? correlation_or_nan(point.v, known.head) : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace attsvm::internal
