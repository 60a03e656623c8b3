#pragma once

#include <vector>

#include "base/buffer.h"
#include "margin/dense_kernels.h"

namespace attsvm {

/// Rows δ_k, ζ_k of unit length, grouped by query, in the layouts of the dense loops.
class UnitRows {
 public:
  /// Room for `rows` vectors δ of size d and `queries` vectors ζ of size dz, to be filled by the caller.
  void shape(Index rows, Index queries, Index d, Index dz);
  /// Groups the first `rows` rows by their query (rows of a query must be neighbours) and lays them out.
  void group(const Index* query, Index rows, bool with_gram);

  double* delta(Index k) { return delta_.data() + k * dp_; }
  double* zeta(Index i) { return zeta_.data() + i * zp_; }
  double* work() { return work_.data(); }
  const std::vector<RowBlock>& blocks() const { return blocks_; }
  const double* gram(const RowBlock& block) const { return gram_.data() + block.gram; }
  Index d() const { return d_; }
  Index dp() const { return dp_; }
  Index dz() const { return dz_; }
  Index zp() const { return zp_; }
  Index entries() const { return dp_ * dz_; }  ///< of a padded W
  RowBlocks view() const;

 private:
  Index d_ = 0, dp_ = 0, dz_ = 0, zp_ = 0;
  Buffer<double> delta_, zeta_, across_, gram_, work_;
  std::vector<RowBlock> blocks_;
};

}  // namespace attsvm
