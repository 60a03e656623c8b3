#pragma once

#include "attsvm/threads.h"
#include "base/storage.h"

namespace attsvm::internal {

/// Singular vectors of a row-major d × dz matrix, as full bases of both sides, from the Gram matrix of its smaller
/// side. Vectors whose singular value is below 1e-6 of the largest are orthonormal but not singular. Memory is kept;
/// the caller keeps a SingleThreadBlas.
class SingularSplit {
 public:
  SingularSplit(Index d, Index dz, Threads& threads);

  /// False: LAPACK did not converge.
  bool compute(const double* B);

  Index count() const { return std::min(d_, dz_); }
  double value(Index k) const { return k < count() ? values_[k] : 0; }              ///< largest first
  const double* left() const { return d_ < dz_ ? small_.data() : large_.data(); }   ///< row k: the k-th left vector
  const double* right() const { return d_ < dz_ ? large_.data() : small_.data(); }  ///< row k: the k-th right vector

  Index rank_above(double level) const;
  double sum_above(double level) const;  ///< Σ (value − level) over the values above `level`
  /// W = Σ (value_k − level) u_k v_kᵀ over the values above `level`.
  void shrink(double level, double* W);

 private:
  void multiply_gram(const double* B);
  void multiply_vectors(const double* B);
  void complete(Index known);

  Index d_, dz_;
  Threads* threads_;
  Storage<double> gram_, small_, large_, shrunk_;  // small_, large_: vectors of the smaller and of the larger side
  Buffer<double> ascending_, values_;
};

/// The largest singular value, to rounding; NaN if LAPACK did not converge.
double largest_singular_value(const double* B, Index d, Index dz);

}  // namespace attsvm::internal
