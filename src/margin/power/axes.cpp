#include "margin/power/axes.h"

#include <algorithm>

namespace attsvm::internal {

template <class Real>
void Axes<Real>::set(const Matrix& U, const Matrix& V) {
  U_ = U;
  V_ = V;
}

template <class Real>
void Axes<Real>::into(const Real* Y, Real* C) const {
  Eigen::Map<Matrix>(C, U_.rows(), V_.rows()) = U_.transpose() * Eigen::Map<const Matrix>(Y, U_.rows(), V_.rows()) * V_;
}

template <class Real>
void Axes<Real>::out_of(const Real* C, Real* Y) const {
  Eigen::Map<Matrix>(Y, U_.rows(), V_.rows()) = U_ * Eigen::Map<const Matrix>(C, U_.rows(), V_.rows()) * V_.transpose();
}

template class Axes<long double>;

void Axes<double>::set(const Matrix& U, const Matrix& V) {
  U_ = U;
  V_ = V;
  const Index left = U.rows(), right = V.rows(), padded = pad4(right);
  columns_of_U_.grow(left * left);
  Eigen::Map<Eigen::MatrixXd>(columns_of_U_.data(), left, left) = U;
  rows_of_V_.fill(right * padded, 0);
  columns_of_V_.fill(right * padded, 0);
  for (Index i = 0; i < right; ++i) {
    for (Index j = 0; j < right; ++j) rows_of_V_[i * padded + j] = columns_of_V_[j * padded + i] = V(i, j);
  }
  half_.grow(left * padded);
  whole_.grow(left * padded);
}

/// The kernels have matrices in columns, so what they see and return is transposed.
void Axes<double>::turn(const double* from, const Buffer<double>& inner, const double* outer, double* to) const {
  const Index left = U_.rows(), right = V_.rows(), padded = pad4(right);
  multiply(inner.data(), padded, right, right, from, right, left, half_.data(), padded);
  multiply(half_.data(), padded, right, left, outer, left, left, whole_.data(), padded);
  for (Index i = 0; i < left; ++i) std::copy_n(whole_.data() + i * padded, right, to + i * right);
}

void Axes<double>::into(const double* Y, double* C) const { turn(Y, rows_of_V_, columns_of_U_.data(), C); }

void Axes<double>::out_of(const double* C, double* Y) const { turn(C, columns_of_V_, U_.data(), Y); }

}  // namespace attsvm::internal
