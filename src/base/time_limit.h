#pragma once

#include <chrono>

#include "base/refuse.h"

namespace attsvm::internal {

/// The time since its construction, and whether that exceeds a limit.
class TimeLimit {
 public:
  /// `limit`: seconds; 0: none. InputError if it is negative or NaN.
  explicit TimeLimit(double limit = 0) : limit_(limit) {
    if (!(limit >= 0)) refuse("time_limit = {}; must be at least 0", limit);
  }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool over() const { return limit_ > 0 && seconds() > limit_; }  ///< does not read the clock if there is no limit

 private:
  using Clock = std::chrono::steady_clock;
  double limit_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace attsvm::internal
