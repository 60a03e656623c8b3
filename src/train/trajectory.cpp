#include <algorithm>

#include "attsvm/train.h"

namespace attsvm {

Index RecordPlan::next(Index from, Index steps) const {
  Index step = 0;
  if (!at.empty()) {
    const auto found = std::lower_bound(at.begin(), at.end(), from);
    if (found == at.end()) return -1;
    step = *found;
  } else if (every > 0) {
    step = (from + every - 1) / every * every;
  } else {
    step = from <= 0 ? 0 : steps;
  }
  return step >= from && step <= steps ? step : -1;
}

bool RecordPlan::due(Index step, Index steps) const { return next(step, steps) == step; }

Index RecordPlan::count(Index steps) const {
  if (!at.empty()) return static_cast<Index>(at.size());
  if (every > 0) return steps / every + 1;
  return steps > 0 ? 2 : 1;
}

}  // namespace attsvm
