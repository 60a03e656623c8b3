#pragma once

#include "attsvm/margin.h"
#include "base/wide.h"

namespace attsvm::internal {

inline std::size_t at(Index k) { return static_cast<std::size_t>(k); }

/// x with L x = b, and x with Lᵀ x = b, for the rows of a lower triangular L. Entries of zero pivots become 0, and stay
/// as they are.
WideVector solve_lower(const std::vector<WideVector>& L, const WideVector& b);
WideVector solve_transposed(const std::vector<WideVector>& L, WideVector b);

/// The rows of a problem in wide numbers, every δ and ζ scaled by a power of two to a largest entry in [1/2, 1). Rows
/// of size zero, whose value is 0 for every W, are left out.
class WideRows {
 public:
  /// Whether the rows are few and small enough for active sets in wide numbers, which take seconds then.
  static bool suit(const MarginProblem& problem);
  void load(const MarginProblem& problem);

  Index count() const { return static_cast<Index>(row_.size()); }
  Index d() const { return d_; }
  Index dz() const { return dz_; }
  Index row(Index k) const { return row_[at(k)]; }      ///< its number in the problem
  Index group(Index k) const { return group_[at(k)]; }  ///< rows of a group are consecutive
  const Wide* delta(Index k) const { return delta_.data() + k * d_; }
  const Wide* zeta(Index group) const { return zeta_.data() + group * dz_; }
  /// A scaled row and its right-hand side are 2^−exponent times those of the problem, its multiplier 2^exponent times.
  slong exponent(Index k) const { return exponent_[at(k)]; }

  /// W = Σ λ_k δ_k ζ_kᵀ of scaled rows, row-major.
  void weigh(const WideVector& lambda, WideVector& W) const;
  /// δ_kᵀ W ζ_k of all scaled rows.
  void values(const WideVector& W, WideVector& out) const;
  Wide inner(Index k, Index l) const;  ///< of two scaled rows

 private:
  Index d_ = 0, dz_ = 0;
  std::vector<Index> row_, group_;
  std::vector<slong> exponent_;
  WideVector delta_, zeta_;
};

}  // namespace attsvm::internal
