#include "margin/rows/unit_rows.h"

#include "base/kernels/gram.h"

namespace attsvm::internal {

void UnitRows::shape(Index rows, Index queries, Index d, Index dz) {
  d_ = d;
  dz_ = dz;
  dp_ = pad4(d);
  zp_ = pad4(dz);
  delta_.grow(rows * dp_);
  zeta_.grow(queries * zp_);
}

void UnitRows::group(const Index* query, Index rows, Gram gram) {
  const bool whole = gram == Gram::whole;
  query_ = query;
  whole_ld_ = whole ? pad4(rows) : 0;
  blocks_.clear();
  Index across_size = 0, gram_size = 0, longest = 0;
  for (Index k = 0; k < rows;) {
    RowBlock block{k, 0, query[k], across_size, gram_size, 0};
    while (k < rows && query[k] == block.query) ++k;
    block.count = k - block.first;
    block.ld = whole ? whole_ld_ : pad4(block.count);
    longest = std::max(longest, block.count);
    across_size += whole ? block.count : block.ld * d_;
    gram_size += whole ? block.count * (block.ld + 1) : block.ld * block.count;
    blocks_.push_back(block);
  }
  work_.grow(kOuters * dp_ + 2 * pad4(longest));
  if (whole) {
    across_.grow(whole_ld_ * d_ + 4);  // loops read the last block up to its padding
    gram_.grow(whole_ld_ * whole_ld_);
    all_.clear();
    for (Index k = 0; k < rows; ++k) all_.push(k);
    lay_across(delta_.data(), d_, rows, across_.data(), whole_ld_);
    multiply(across_.data(), all_.begin(), rows, gram_.data(), whole_ld_);
    mirror(gram_.data(), whole_ld_, rows);
    return;
  }
  across_.grow(across_size);
  if (gram == Gram::blocks) gram_.grow(gram_size);
  for (const RowBlock& block : blocks_) {
    double* across = across_.data() + block.across;
    lay_across(delta(block.first), d_, block.count, across, block.ld);
    for (Index k = 0; gram == Gram::blocks && k < block.count; ++k) {
      combine(across, block.ld, d_, delta(block.first + k), gram_.data() + block.gram + k * block.ld);
    }
  }
}

void UnitRows::gram_of(const Index* at, Index count, double* G, Index ld) {
  if (has_whole_gram()) {
    pick(gram_.data(), whole_ld_, at, count, G, ld);
    return;
  }
  const Index ldd = pad4(count);
  picked_.grow(d_ * ldd);
  for (Index f = 0; f < d_; ++f) {
    for (Index j = 0; j < count; ++j) picked_[f * ldd + j] = delta(at[j])[f];
    std::fill_n(picked_.data() + f * ldd + count, ldd - count, 0.0);
  }
  multiply(picked_.data(), at, count, G, ld);
}

void UnitRows::multiply(const double* across, const Index* at, Index count, double* G, Index ld) {
  const Index ldd = pad4(count);
  local_.grow(count);
  at_query_.grow(count);
  start_.clear();
  for (Index j = 0; j < count; ++j) {
    at_query_[j] = query_[at[j]];
    if (j == 0 || at_query_[j] != at_query_[j - 1]) start_.push(j);
    local_[j] = start_.size() - 1;
  }
  const Index groups = start_.size();
  start_.push(count);
  products_.grow(groups * ldd);
  query_products(zeta_.data(), zp_, at_query_.data(), start_.begin(), groups, ldd, products_.data());
  hadamard_gram(across, d_, count, ldd, products_.data(), local_.data(), G, ld);
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

}  // namespace attsvm::internal
