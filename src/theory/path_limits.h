#pragma once

#include <functional>
#include <map>

#include "attsvm/margin.h"
#include "attsvm/theory.h"

namespace attsvm::internal {

/// The directions to which regularization paths of a task tend according to the theory.
class PathLimits {
 public:
  /// `head_radius` is ‖v‖/‖W‖ where the head is trained, 0 where it is not. When `stop` returns true, long solves end
  /// early and their limits are missing. `stop` must outlive this object.
  PathLimits(const AttentionTask& task, Parametrization param, double head_radius, const std::function<bool()>& stop,
             Threads& threads);

  struct Limit {
    MarginSolution weights, head;
    Index relaxed = 0;  ///< inputs with a smaller right-hand side than the others (joint_svm.h)
  };

  /// Where to start: the limit of the optimal tokens; where the head is trained, the SVMs (none relaxed) of the tokens
  /// that separate the labels best, if there are few enough selections to enumerate. Null if there is none, or if the
  /// head is not linear.
  const Limit* prediction();
  /// Fills in the correlations of a point with the limit of its own selection.
  void compare(PathPoint& point);

 private:
  std::vector<Index> best_labelled();
  const MarginSolution& solve(const MarginProblem& problem, const Norm& norm);
  const Limit& limit(const std::vector<Index>& selected);

  const AttentionTask& task_;
  Norm norm_;
  double head_radius_;
  const std::function<bool()>& stop_;
  MarginSolver solver_;
  std::map<std::vector<Index>, Limit> known_;
  Limit predicted_;
};

}  // namespace attsvm::internal
