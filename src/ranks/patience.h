#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace attsvm::internal {

/// How long to wait between looks at the wire: not at all at first, then longer and longer, so that ranks that wait for
/// long leave their core to others. Where the cores are taken, giving one's own away costs a slice of someone else's
/// time, and to sleep for a moment is quicker.
class Patience {
 public:
  void wait() {
    const Clock::time_point now = Clock::now();
    if (turns_ == 0) begin_ = now;
    ++turns_;
    if (now - begin_ < kAwake && now > crowded_until()) {
      std::this_thread::yield();
      if (Clock::now() - now > kSlice) crowded_until() = now + kCrowded;
    } else {
      std::this_thread::sleep_for(std::min(kShortest + (now - begin_) / 16, Clock::duration(kLongest)));
    }
  }
  void reset() { turns_ = 0; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kAwake{200}, kShortest{20}, kLongest{1000}, kSlice{300};
  static constexpr std::chrono::seconds kCrowded{1};

  static Clock::time_point& crowded_until() {
    thread_local Clock::time_point until;
    return until;
  }

  Clock::time_point begin_;
  int turns_ = 0;
};

}  // namespace attsvm::internal
