#pragma once

#include "attsvm/norm.h"
#include "margin/power/axes.h"

namespace attsvm::internal {

/// Orthonormal coordinates of matrices (left, right), left ≥ right, in which a function of the values of one matrix X
/// has a diagonal derivative. Entrywise: the entries, which are also the values. Schatten: with X = U diag(σ) Vᵀ, the
/// entries c of UᵀYV, those off the diagonal combined into symmetric (c_ij + c_ji)/√2 and antisymmetric parts
/// (c_ij − c_ji)/√2. Matrices are row-major vectors. Keeps its memory between calls; calls on one object must not
/// overlap.
template <class Real>
class Frame {
 public:
  using Vector = PowerVector<Real>;
  using Matrix = PowerMatrix<Real>;

  void shape(NormFamily family, Index left, Index right);
  void take(const Vector& X);  ///< makes X the matrix that has the values and the axes

  bool entrywise() const { return family_ == NormFamily::entrywise; }
  Index size() const { return left_ * right_; }
  Index value_count() const { return entrywise() ? size() : right_; }
  /// Coordinates of a Schatten frame that belong to no pair of values, per value.
  Index spare() const { return entrywise() ? 0 : left_ - right_; }
  const Vector& values() const { return values_; }  ///< entries, or singular values with the largest first

  void into(const Vector& Y, Vector& c) const;                                ///< coordinates of Y
  void out_of(const Vector& c, Vector& Y) const;                              ///< Y from its coordinates
  void compose(const Vector& f, Vector& Y) const;                             ///< Y with these values and the axes of X
  Index diagonal(Index i) const { return entrywise() ? i : i * right_ + i; }  ///< the coordinate of value i

  const Matrix& U() const { return U_; }  ///< of a Schatten frame: (left, left)
  const Matrix& V() const { return V_; }  ///< the same: (right, right)

  /// The values of any matrix, in no frame and in no order.
  Vector values_of(const Vector& Y) const;

  /// Calls pair(c, i, j, sign) for every coordinate c off the diagonal: values i and j, sign 1 for the symmetric and −1
  /// for the antisymmetric part; and alone(c, j) for every spare coordinate of value j.
  template <class Pair, class Alone>
  void for_each_off_diagonal(const Pair& pair, const Alone& alone) const {
    if (entrywise()) return;
    for (Index i = 0; i < left_; ++i) {
      for (Index j = 0; j < right_; ++j) {
        if (i >= right_) {
          alone(i * right_ + j, j);
        } else if (i != j) {
          pair(i * right_ + j, i, j, i < j ? 1 : -1);
        }
      }
    }
  }

 private:
  void mix(Real* numbers) const;
  void decompose(const Vector& X);
  bool turn(const Vector& X);

  NormFamily family_ = NormFamily::entrywise;
  Index left_ = 0, right_ = 0;
  Vector values_;
  Matrix U_, V_;   // U is square: its last columns span what U of the thin decomposition leaves out
  int turns_ = 0;  // decompositions since the last that did not start from the V before
  Axes<Real> axes_;
  PowerColumns<Real> columns_;
  mutable Vector mixed_;
  std::vector<Index> order_;
};

extern template class Frame<double>;
extern template class Frame<long double>;

}  // namespace attsvm::internal
