#include "margin/power/frame.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <numbers>
#include <numeric>
#include <type_traits>

#include "base/decompositions.h"
#include "base/kernels/jacobi.h"

namespace attsvm::internal {
namespace {

constexpr int kTurns = 16;          // decompositions after which V starts afresh, because it collects rounding errors
constexpr double kNothing = 1e-14;  // relative size of a singular value that says nothing about its vector

}  // namespace

template <class Real>
void Frame<Real>::shape(NormFamily family, Index left, Index right) {
  family_ = family;
  left_ = left;
  right_ = right;
  turns_ = 0;
}

template <class Real>
void Frame<Real>::take(const Vector& X) {
  if (entrywise()) {
    values_ = X;
    return;
  }
  if (!turn(X)) decompose(X);
  axes_.set(U_, V_);
}

template <class Real>
void Frame<Real>::decompose(const Vector& X) {
  using Columns = PowerColumns<Real>;
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

/// A decomposition of a small matrix, which starts from the one before. False: none found.
template <class Real>
bool Frame<Real>::turn(const Vector& X) {
  if constexpr (std::is_same_v<Real, double>) {
    if (right_ >= kLapackColumns) return false;
    const Real largest = X.cwiseAbs().template maxCoeff<Eigen::PropagateNaN>();
    if (!(largest > kLeastToSquare && largest < 1 / kLeastToSquare)) {
      turns_ = 0;
      return false;
    }
    const Index tall = pad4(left_), stride = tall + pad4(right_);
    if (turns_ == 0) V_.setIdentity(right_, right_);
    turns_ = (turns_ + 1) % kTurns;
    columns_.setZero(stride, right_);
    columns_.topRows(left_).noalias() = Eigen::Map<const Matrix>(X.data(), left_, right_) * V_;
    columns_.middleRows(tall, right_) = V_;
    if (!orthogonalize(columns_.data(), stride, tall, right_)) {
      turns_ = 0;
      return false;
    }
    const Vector sigma = columns_.topRows(left_).colwise().norm();
    order_.resize(static_cast<std::size_t>(right_));
    std::iota(order_.begin(), order_.end(), Index{0});
    std::sort(order_.begin(), order_.end(), [&](Index i, Index j) { return sigma(i) > sigma(j); });
    values_.resize(right_);
    U_.resize(left_, left_);
    Index sure = 0;  // columns of U that are determined
    for (Index i = 0; i < right_; ++i) {
      const Index from = order_[static_cast<std::size_t>(i)];
      values_(i) = sigma(from);
      V_.col(i) = columns_.col(from).segment(tall, right_);
      if (!(values_(i) > kNothing * values_(0))) continue;
      U_.col(i) = columns_.col(from).head(left_) / values_(i);
      sure = i + 1;
    }
    if (sure == left_) return true;
    const Eigen::HouseholderQR<PowerColumns<Real>> qr(U_.leftCols(sure));
    columns_.setIdentity(left_, left_);
    columns_.applyOnTheLeft(qr.householderQ());
    U_.rightCols(left_ - sure) = columns_.rightCols(left_ - sure);
    return true;
  } else {
    return false;
  }
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
  c.resize(size());
  axes_.into(Y.data(), c.data());
  mix(c.data());
}

template <class Real>
void Frame<Real>::out_of(const Vector& c, Vector& Y) const {
  if (entrywise()) {
    Y = c;
    return;
  }
  mixed_ = c;
  mix(mixed_.data());
  Y.resize(size());
  axes_.out_of(mixed_.data(), Y.data());
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
