#include <algorithm>
#include <cmath>

#include "attsvm/train.h"

namespace attsvm {

RecordPlan RecordPlan::spread(Index steps, Index count) {
  RecordPlan plan{.at = {0}, .ending = true};
  for (Index left = count - 1; left > 0 && plan.at.back() < steps; --left) {
    const auto here = static_cast<double>(std::max<Index>(plan.at.back(), 1));
    const double ratio = std::pow(static_cast<double>(steps) / here, 1 / static_cast<double>(left));
    const auto next = static_cast<Index>(std::llround(here * ratio));
    plan.at.push_back(left == 1 ? steps : std::min(std::max(next, plan.at.back() + 1), steps));
  }
  return plan;
}

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
