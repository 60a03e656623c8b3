#pragma once

#include <map>
#include <optional>

#include "attsvm/margin.h"
#include "attsvm/path.h"

namespace attsvm {

/// The directions in which the theory says that regularization paths of a task end.
class PathLimits {
 public:
  PathLimits(const AttentionTask& task, Parametrization param, bool joint, Threads& threads);

  struct Limit {
    MarginSolution weights, head;
    Index relaxed = 0;
  };

  /// Where to start: the limit of the optimal tokens; where the head is trained, the SVMs (none relaxed) of the tokens
  /// by which labels are told apart best, if there are few enough selections to look at. Null where there is none, or
  /// where the head is not linear.
  const Limit* prediction();
  /// Fills in the correlations of a point with the limit of its own selection.
  void compare(PathPoint& point);

 private:
  std::vector<Index> best_labelled();
  const Limit& limit(const std::vector<Index>& selected);

  const AttentionTask& task_;
  Norm norm_;
  bool joint_;
  MarginSolver solver_;
  std::map<std::vector<Index>, Limit> known_;
  Limit predicted_;
};

}  // namespace attsvm
