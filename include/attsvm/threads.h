#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace attsvm {

/// Where batches of small runs are computed.
enum class Device : std::uint8_t {
  automatic,  ///< on a GPU if there is one and the batch is large enough to gain from it, else on the CPU
  cpu,        ///< on the CPU
  cuda,       ///< on the GPU, as far as it can take the work
};

std::string_view name_of(Device device);  ///< auto, cpu or cuda

/// A pool of threads that share the chunks of loops. Any thread may run any chunk. Results are the same bytes for any
/// number of threads if the loops follow two rules: what a chunk computes does not depend on the thread, and sums over
/// chunks are taken in chunk order.
class Threads {
 public:
  /// A pool of `count` threads, the calling one included; 0: one per core. InputError if the count is negative or the
  /// threads cannot be started.
  explicit Threads(int count = 0);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const;               ///< threads, the calling one included
  Device device() const;           ///< where batches of small runs are computed; at first Device::automatic
  void set_device(Device device);  ///< of the batches of later calls

  /// Calls work(chunk) for chunk = 0 … chunks−1 and returns when all are done. If chunks throw, the others still run,
  /// and the exception of the lowest chunk is thrown again here. Must not be called from inside `work`, nor from two
  /// threads at once.
  void for_each(std::int64_t chunks, const std::function<void(std::int64_t)>& work);

 private:
  struct Pool;
  std::unique_ptr<Pool> pool_;
  Device device_ = Device::automatic;
};

}  // namespace attsvm
