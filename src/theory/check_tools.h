#pragma once

#include <limits>
#include <span>
#include <vector>

#include "attsvm/theory.h"
#include "base/time_limit.h"

namespace attsvm::internal {

// What checks of tasks of all kinds share.

/// How to solve so that the check as a whole respects its limits; a solve that they end sets `complete` to false. Both
/// arguments must outlive the result.
inline SolveSettings solve_settings(const CheckSettings& settings, bool& complete) {
  const TimeLimit limit(settings.time_limit);
  SolveSettings solves;
  if (settings.time_limit > 0 || settings.progress) {
    solves.progress = [&settings, &complete, limit](const SolveProgress& now) {
      complete = complete && !limit.over() && !(settings.progress && settings.progress(now));
      return !complete;
    };
  }
  return solves;
}

/// The correlation of each point with W; NaN if that is null.
inline std::vector<double> correlations(std::span<const ConstRows> record, const RowMatrix* W) {
  std::vector<double> list;
  list.reserve(record.size());
  for (const ConstRows& point : record) {
    list.push_back(W != nullptr ? correlation(point, *W) : std::numeric_limits<double>::quiet_NaN());
  }
  return list;
}

/// Its W if it is optimal, else null.
inline const RowMatrix* solved(const MarginSolution& solution) {
  return solution.status == MarginStatus::optimal ? &solution.W : nullptr;
}

}  // namespace attsvm::internal
