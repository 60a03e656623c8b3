#pragma once

#include <vector>

#include "base/buffer.h"
#include "base/kernels/dense.h"

namespace attsvm::internal {

/// Rows δ_k, ζ_k of unit length, grouped by query, in the layouts of the dense loops.
class UnitRows {
 public:
  enum class Gram : std::uint8_t {
    none,
    blocks,  ///< δδᵀ of every query
    whole,   ///< of all rows: (δ_k·δ_l)(ζ_k·ζ_l)
  };

  /// Room for `rows` vectors δ of size d and `queries` vectors ζ of size dz, to be filled by the caller.
  void shape(Index rows, Index queries, Index d, Index dz);
  /// Groups the first `rows` rows by their query (rows of a query must be consecutive) and lays them out. The array
  /// `query` must stay valid.
  void group(const Index* query, Index rows, Gram gram);
  /// Lower triangle of the Gram matrix of `count` rows, `at` ascending: pad4(count) columns of leading size ld.
  void gram_of(const Index* at, Index count, double* G, Index ld);

  double* delta(Index k) { return delta_.data() + k * dp_; }
  double* zeta(Index i) { return zeta_.data() + i * zp_; }
  double* work() { return work_.data(); }
  const std::vector<RowBlock>& blocks() const { return blocks_; }
  const double* gram(const RowBlock& block) const { return gram_.data() + block.gram; }
  bool has_whole_gram() const { return whole_ld_ > 0; }
  const double* whole_gram() const { return gram_.data(); }
  Index whole_ld() const { return whole_ld_; }  ///< leading size of the whole Gram matrix
  Index d() const { return d_; }
  Index dp() const { return dp_; }
  Index dz() const { return dz_; }
  Index zp() const { return zp_; }
  Index entries() const { return dp_ * dz_; }  ///< of a padded W
  RowBlocks view() const;

 private:
  void multiply(const double* across, const Index* at, Index count, double* G, Index ld);

  Index d_ = 0, dp_ = 0, dz_ = 0, zp_ = 0, whole_ld_ = 0;
  const Index* query_ = nullptr;
  Buffer<double> delta_, zeta_, across_, gram_, work_;
  Buffer<double> picked_, products_;  // of gram_of: the rows laid across, and ζ·ζ of every query with every row
  Buffer<Index> at_query_, local_;    // queries of these rows, and the same numbered in order
  IndexList all_, start_;
  std::vector<RowBlock> blocks_;
};

}  // namespace attsvm::internal
