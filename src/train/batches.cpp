#include "train/batches.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "train/streams.h"

namespace attsvm::internal {

Batches::Batches(Index queries, Index size, std::uint64_t seed, std::uint32_t instance)
    : queries_(queries),
      size_(size > 0 && size < queries ? size : 0),
      per_epoch_(size_ > 0 ? (queries + size_ - 1) / size_ : 1),
      seed_(seed),
      instance_(instance) {}

std::span<const Index> Batches::at(Index step) {
  if (size_ == 0) return {};
  if (step / per_epoch_ != epoch_) {
    epoch_ = step / per_epoch_;
    order_.resize(static_cast<std::size_t>(queries_));
    std::iota(order_.begin(), order_.end(), Index{0});
    const Random random(seed_, instance_, kBatches);
    const std::uint64_t first = static_cast<std::uint64_t>(epoch_) * order_.size();
    for (std::size_t k = order_.size(); k-- > 1;) std::swap(order_[k], order_[random.below(k + 1, first + k)]);
    for (Index begin = 0; begin < queries_; begin += size_) {
      std::sort(order_.begin() + begin, order_.begin() + std::min(queries_, begin + size_));
    }
  }
  const Index begin = step % per_epoch_ * size_;
  return std::span(order_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(std::min(size_, queries_ - begin)));
}

}  // namespace attsvm::internal
