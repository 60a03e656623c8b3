#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace attsvm {

/// A few threads that share loops. Which thread runs which chunk is left open; what a chunk computes must not depend
/// on it, and sums over chunks are to be taken in chunk order. Then any number of threads gives the same bytes.
class Threads {
 public:
  /// `count` threads, the calling one included; 0: as many as the machine has cores.
  explicit Threads(int count = 0);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const;

  /// Calls work(chunk) for chunk = 0 … chunks−1 and returns when all are done. The first exception thrown by a chunk
  /// (lowest chunk) is thrown again here; the others still run. Not to be called from inside `work`, nor from two
  /// threads at once.
  void for_each(std::int64_t chunks, const std::function<void(std::int64_t)>& work);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

}  // namespace attsvm
