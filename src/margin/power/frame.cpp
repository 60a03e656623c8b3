#include "margin/power/frame.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <numbers>
#include <type_traits>

#include "base/decompositions.h"

namespace attsvm::internal {

template <class Real>
void Frame<Real>::shape(NormFamily family, Index left, Index right) {
  family_ = family;
  left_ = left;
  right_ = right;
}

template <class Real>
void Frame<Real>::take(const Vector& X) {
  if (entrywise()) {
    values_ = X;
    return;
  }
  using Columns = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const Columns matrix = Eigen::Map<const Matrix>(X.data(), left_, right_);
  Columns U;
  if constexpr (std::is_same_v<Real, double>) {
    ThinSvd svd = thin_svd(matrix);
    U = std::move(svd.U);
    V_ = svd.V;
    values_ = svd.sigma;
  } else {
    const Eigen::JacobiSVD<Columns> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
    U = svd.matrixU();
    V_ = svd.matrixV();
    values_ = svd.singularValues();
  }
  U_.resize(left_, left_);
  if (left_ > right_) {
    const Eigen::HouseholderQR<Columns> qr(U);
    U_ = Columns(qr.householderQ());
  }
  U_.leftCols(right_) = U;
}

/// From entries off the diagonal to symmetric and antisymmetric parts, and back: the map is its own inverse.
template <class Real>
void Frame<Real>::mix(Real* numbers) const {
  constexpr Real kHalf = std::numbers::sqrt2_v<Real> / 2;
  Eigen::Map<Matrix> C(numbers, left_, right_);
  for (Index i = 0; i < right_; ++i) {
    for (Index j = i + 1; j < right_; ++j) {
      const Real above = C(i, j), below = C(j, i);
      C(i, j) = kHalf * (above + below);
      C(j, i) = kHalf * (above - below);
    }
  }
}

template <class Real>
void Frame<Real>::into(const Vector& Y, Vector& c) const {
  if (entrywise()) {
    c = Y;
    return;
  }
  Matrix C = U_.transpose() * Eigen::Map<const Matrix>(Y.data(), left_, right_) * V_;
  mix(C.data());
  c = Eigen::Map<const Vector>(C.data(), C.size());
}

template <class Real>
void Frame<Real>::out_of(const Vector& c, Vector& Y) const {
  if (entrywise()) {
    Y = c;
    return;
  }
  Matrix C = Eigen::Map<const Matrix>(c.data(), left_, right_);
  mix(C.data());
  C = (U_ * C * V_.transpose()).eval();
  Y = Eigen::Map<const Vector>(C.data(), C.size());
}

template <class Real>
void Frame<Real>::rows_into(const PowerRows<Real>& rows, Matrix& C) const {
  if (entrywise()) {
    C = rows.R();
    return;
  }
  rows.rotate(U_, V_, C);
  for (Index k = 0; k < C.rows(); ++k) mix(C.row(k).data());
}

template <class Real>
void Frame<Real>::compose(const Vector& f, Vector& Y) const {
  if (entrywise()) {
    Y = f;
    return;
  }
  const Matrix C = U_.leftCols(right_) * f.asDiagonal() * V_.transpose();
  Y = Eigen::Map<const Vector>(C.data(), C.size());
}

template <class Real>
typename Frame<Real>::Vector Frame<Real>::values_of(const Vector& Y) const {
  if (entrywise()) return Y;
  const Eigen::Map<const Matrix> matrix(Y.data(), left_, right_);
  if constexpr (std::is_same_v<Real, double>) {
    return singular_values(Eigen::MatrixXd(matrix));
  } else {
    return Eigen::JacobiSVD<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>>(matrix).singularValues();
  }
}

template class Frame<double>;
template class Frame<long double>;

}  // namespace attsvm::internal
