#pragma once

#include "base/buffer.h"

namespace attsvm::internal {

/// Thin QR factorisation A = QR of a changing list of vectors: classical Gram–Schmidt, repeated where needed.
class QrBasis {
 public:
  void reset(Index dimension);  ///< to no vectors; `dimension` must be a multiple of 4
  Index size() const { return size_; }
  Index dimension() const { return dimension_; }
  const double* q(Index j) const { return Q_.data() + j * dimension_; }

  double project(const double* a);                          ///< splits a = Q c + rest and returns ‖rest‖
  const double* coefficients() const { return c_.data(); }  ///< c of the last project()
  void push();                                              ///< appends the vector just projected
  /// Appends the vector unless it is in the span to rounding; no more than `most` in all. For vectors of unit length.
  void widen(const double* a, Index most);
  void drop(Index j);                                      ///< removes vector j
  void solve(double* x) const;                             ///< x ← R⁻¹ x
  void solve_transposed(double* x, Index from = 0) const;  ///< x ← R⁻ᵀ x; entries before `from` are done already

 private:
  double* r(Index j) { return R_.data() + j * capacity_; }
  const double* r(Index j) const { return R_.data() + j * capacity_; }

  Index dimension_ = 0, size_ = 0, capacity_ = 0;
  double rest_norm_ = 0;
  Buffer<double> Q_, R_, c_, rest_, extra_, cosine_, sine_;
};

}  // namespace attsvm::internal
