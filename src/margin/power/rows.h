#pragma once

#include "attsvm/margin.h"
#include "margin/power/outer_rows.h"

namespace attsvm::internal {

/// Rows of a problem scaled to unit length, with W as a row-major vector of left·right numbers. For Schatten norms δ
/// and ζ are in orthonormal coordinates of their spans if those have fewer dimensions than d and dz. W is transposed,
/// with δ on the right, unless a Schatten norm needs left ≥ right. Neither changes the norm. Keeps its memory between
/// calls.
template <class Real>
class PowerRows {
 public:
  using Vector = PowerVector<Real>;
  using Matrix = PowerMatrix<Real>;

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
  const OuterRows<Real>& products() const { return products_; }
  /// The products of UᵀRV for every row R of `products`, which are these or some of them; U (left, left) and V (right,
  /// right).
  void rotate(const OuterRows<Real>& products, const Matrix& U, const Matrix& V, OuterRows<Real>& rotated) const;
  /// Row k as a vector, and one entry of it.
  void write(Index k, Vector& row) const;
  Real entry(Index k, Index i, Index j) const {
    return swapped_ ? zeta_(query_[k], i) * delta_(k, j) : delta_(k, i) * zeta_(query_[k], j);
  }

  /// Conversions from and to the units of the problem.
  void weights_in(const RowMatrix& W, Vector& w) const;
  void weights_out(const Vector& w, RowMatrix& W) const;
  void duals_in(const Eigen::VectorXd& dual, Vector& lambda) const;
  void duals_out(const Vector& lambda, Eigen::VectorXd& dual) const;

 private:
  void gather(const MarginProblem& problem, const IndexList* list);
  static bool reduce(Matrix& vectors, Matrix& basis);

  Index count_ = 0, queries_ = 0, inequalities_ = 0, left_ = 0, right_ = 0, rows_of_problem_ = 0;
  Real scale_ = 1;
  bool swapped_ = false, left_reduced_ = false, right_reduced_ = false;
  Buffer<Index> row_, query_;
  Buffer<std::uint8_t> equal_;
  Vector b_, size_;
  Matrix delta_, zeta_;
  Matrix left_basis_, right_basis_;  // of δ and of ζ, one vector per row
  OuterRows<Real> products_;
};

extern template class PowerRows<double>;
extern template class PowerRows<long double>;

}  // namespace attsvm::internal
