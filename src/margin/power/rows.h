#pragma once

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm::internal {

/// Rows of a problem as dense vectors of unit length, with W as a row-major vector of left·right numbers. For Schatten
/// norms δ and ζ are in orthonormal coordinates of their spans if those have fewer dimensions than d and dz, and change
/// sides if that makes left ≥ right; neither changes the norm. Keeps its memory between calls.
template <class Real>
class PowerRows {
 public:
  using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// `scale`: W in the problem / W here. `list`: the rows to take, ascending; null: all. Rows whose value is 0 for
  /// every W are left out.
  void load(const MarginProblem& problem, NormFamily family, Real scale, const IndexList* list = nullptr);

  Index count() const { return count_; }
  Index left() const { return left_; }
  Index right() const { return right_; }
  Index unknowns() const { return left_ * right_; }
  Index inequalities() const { return inequalities_; }
  Real scale() const { return scale_; }
  Index row(Index k) const { return row_[k]; }  ///< its number in the problem
  bool equal(Index k) const { return equal_[k] != 0; }
  const Vector& b() const { return b_; }
  const Matrix& R() const { return R_; }  ///< (count, unknowns)
  /// UᵀRV of every row, U (left, left) and V (right, right).
  void rotate(const Matrix& U, const Matrix& V, Matrix& rotated) const;

  /// Conversions from and to the units of the problem.
  void weights_in(const RowMatrix& W, Vector& w) const;
  void weights_out(const Vector& w, RowMatrix& W) const;
  void duals_in(const Eigen::VectorXd& dual, Vector& lambda) const;
  void duals_out(const Vector& lambda, Eigen::VectorXd& dual) const;

 private:
  void gather(const MarginProblem& problem, const IndexList* list);
  static bool reduce(Matrix& vectors, Matrix& basis);
  void outer(const Matrix& delta, const Matrix& zeta, Matrix& rows) const;

  Index count_ = 0, queries_ = 0, inequalities_ = 0, left_ = 0, right_ = 0, rows_of_problem_ = 0;
  Real scale_ = 1;
  bool swapped_ = false, left_reduced_ = false, right_reduced_ = false;
  Buffer<Index> row_, query_;
  Buffer<std::uint8_t> equal_;
  Vector b_, size_;
  Matrix R_, delta_, zeta_;
  Matrix left_basis_, right_basis_;  // of δ and of ζ, one vector per row
};

extern template class PowerRows<double>;
extern template class PowerRows<long double>;

}  // namespace attsvm::internal
