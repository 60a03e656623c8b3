#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace attsvm::internal {

/// How long to wait between looks at the wire: not at all at first, then longer and longer, so that ranks that wait for
/// long leave their core to others.
class Patience {
 public:
  void wait() {
    constexpr int kAwake = 200;  // about as many microseconds
    constexpr int kLongest = 1000;
    if (++turns_ < kAwake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(turns_ - kAwake + 20, kLongest)));
    }
  }
  void reset() { turns_ = 0; }

 private:
  int turns_ = 0;
};

}  // namespace attsvm::internal
