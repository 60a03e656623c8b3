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

  /// The SVM solution of the optimal tokens; null where there is none, or where the head is trained or not linear.
  const MarginSolution* prediction();
  /// Fills in the correlations of a point with the limit of its own selection.
  void compare(PathPoint& point);

 private:
  struct Limit {
    MarginSolution weights, head;
    Index relaxed = 0;
  };
  const Limit& limit(const std::vector<Index>& selected);

  const AttentionTask& task_;
  Norm norm_;
  bool joint_;
  MarginSolver solver_;
  std::map<std::vector<Index>, Limit> known_;
};

}  // namespace attsvm
