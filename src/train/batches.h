#pragma once

#include <span>
#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

/// Minibatches: every epoch takes each query once, in an order that depends on seed, instance and epoch alone.
class Batches {
 public:
  /// `size` queries per batch; the last batch of an epoch may have fewer. 0 or at least `queries`: no minibatches.
  Batches(Index queries, Index size, std::uint64_t seed, std::uint32_t instance);

  /// The queries of a step, ascending; empty: all. Valid until the next call.
  std::span<const Index> at(Index step);

 private:
  Index queries_, size_, per_epoch_;  // per_epoch_: batches
  std::uint64_t seed_;
  std::uint32_t instance_;
  Index epoch_ = -1;
  std::vector<Index> order_;
};

}  // namespace attsvm::internal
