#pragma once

#include <chrono>

#include "base/refuse.h"

namespace attsvm::internal {

/// InputError if a time limit in seconds is negative or NaN.
inline void require_time_limit(double limit) {
  if (!(limit >= 0)) refuse("time_limit = {}; must be at least 0", limit);
}

/// The time since its construction, and whether that exceeds a limit.
class TimeLimit {
 public:
  /// `limit`: seconds; 0: none. InputError if it is negative or NaN.
  explicit TimeLimit(double limit) : limit_(limit) { require_time_limit(limit); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool over() const { return limit_ > 0 && seconds() > limit_; }  ///< does not read the clock if there is no limit

 private:
  using Clock = std::chrono::steady_clock;
  double limit_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace attsvm::internal
