#include "margin/unit_rows.h"

namespace attsvm {

void UnitRows::shape(Index rows, Index queries, Index d, Index dz) {
  d_ = d;
  dz_ = dz;
  dp_ = pad4(d);
  zp_ = pad4(dz);
  delta_.grow(rows * dp_);
  zeta_.grow(queries * zp_);
}

void UnitRows::group(const Index* query, Index rows, bool with_gram) {
  blocks_.clear();
  Index across_size = 0, gram_size = 0, longest = 0;
  for (Index k = 0; k < rows;) {
    RowBlock block{k, 0, query[k], across_size, gram_size};
    while (k < rows && query[k] == block.query) ++k;
    block.count = k - block.first;
    longest = std::max(longest, block.count);
    across_size += pad4(block.count) * d_;
    gram_size += pad4(block.count) * block.count;
    blocks_.push_back(block);
  }
  across_.grow(across_size);
  gram_.grow(with_gram ? gram_size : 0);
  work_.grow(dp_ + 2 * pad4(longest));
  for (const RowBlock& block : blocks_) {
    const Index ld = pad4(block.count);
    double* across = across_.data() + block.across;
    for (Index f = 0; f < d_; ++f) {
      for (Index k = 0; k < block.count; ++k) across[f * ld + k] = delta(block.first + k)[f];
      for (Index k = block.count; k < ld; ++k) across[f * ld + k] = 0;
    }
    for (Index k = 0; with_gram && k < block.count; ++k) {
      combine(across, ld, d_, delta(block.first + k), gram_.data() + block.gram + k * ld);
    }
  }
}

RowBlocks UnitRows::view() const {
  return {blocks_.data(),
          static_cast<Index>(blocks_.size()),
          d_,
          dp_,
          dz_,
          zp_,
          delta_.data(),
          across_.data(),
          gram_.data(),
          zeta_.data()};
}

}  // namespace attsvm
