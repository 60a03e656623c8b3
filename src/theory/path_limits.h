#pragma once

#include <functional>
#include <map>

#include "attsvm/margin.h"
#include "attsvm/path.h"

namespace attsvm {

/// The directions in which the theory says that regularization paths of a task end.
class PathLimits {
 public:
  /// `head_radius` is ‖v‖/‖W‖ where the head is trained, 0 where it is not. Where `stop` says so solves that take their
  /// time end early, and what they would have told is missing. It must outlive this.
  PathLimits(const AttentionTask& task, Parametrization param, double head_radius, const std::function<bool()>& stop,
             Threads& threads);

  struct Limit {
    MarginSolution weights, head;
    Index relaxed = 0;  ///< inputs with a smaller right-hand side than the others (joint_svm.h)
  };

  /// Where to start: the limit of the optimal tokens; where the head is trained, the SVMs (none relaxed) of the tokens
  /// by which labels are told apart best, if there are few enough selections to look at. Null where there is none, or
  /// where the head is not linear.
  const Limit* prediction();
  /// Fills in the correlations of a point with the limit of its own selection.
  void compare(PathPoint& point);

 private:
  std::vector<Index> best_labelled();
  void solve(const MarginProblem& problem, const Norm& norm, MarginSolution& solution);
  const Limit& limit(const std::vector<Index>& selected);

  const AttentionTask& task_;
  Norm norm_;
  double head_radius_;
  const std::function<bool()>& stop_;
  MarginSolver solver_;
  std::map<std::vector<Index>, Limit> known_;
  Limit predicted_;
};

}  // namespace attsvm
