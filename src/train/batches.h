#pragma once

#include <span>
#include <vector>

#include "attsvm/array.h"

namespace attsvm {

/// Minibatches: every epoch takes the queries once, in an order that is a function of seed, instance and epoch.
class Batches {
 public:
  /// `size` queries a batch, the last of an epoch may have fewer; 0 or at least `queries`: no minibatches.
  Batches(Index queries, Index size, std::uint64_t seed, std::uint32_t instance);

  /// The queries of a step, ascending; empty: all.
  std::span<const Index> at(Index step);

 private:
  Index queries_, size_, a_epoch_;
  std::uint64_t seed_;
  std::uint32_t instance_;
  Index epoch_ = -1;
  std::vector<Index> order_;
};

}  // namespace attsvm
