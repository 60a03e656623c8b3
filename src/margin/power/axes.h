#pragma once

#include "margin/power/outer_rows.h"

namespace attsvm::internal {

/// Changes coordinates of row-major matrices (left, right) by orthogonal U (left, left) and V (right, right). Keeps its
/// memory between calls; calls on one object must not overlap.
template <class Real>
class Axes {
 public:
  using Matrix = PowerMatrix<Real>;

  void set(const Matrix& U, const Matrix& V);
  void into(const Real* Y, Real* C) const;    ///< C = UᵀYV
  void out_of(const Real* C, Real* Y) const;  ///< Y = UCVᵀ

 private:
  Matrix U_, V_;
};

/// The same by kernels that use vector instructions.
template <>
class Axes<double> {
 public:
  using Matrix = PowerMatrix<double>;

  void set(const Matrix& U, const Matrix& V);
  void into(const double* Y, double* C) const;
  void out_of(const double* C, double* Y) const;

 private:
  void turn(const double* from, const Buffer<double>& inner, const double* outer, double* to) const;

  Matrix U_, V_;
  Buffer<double> columns_of_U_, rows_of_V_, columns_of_V_;  // those of V padded
  mutable Buffer<double> half_, whole_;
};

}  // namespace attsvm::internal
