#include "base/qr_basis.h"

#include <cmath>

#include "base/kernels/dense.h"
#include "base/limits.h"

namespace attsvm::internal {

void QrBasis::reset(Index dimension) {
  dimension_ = dimension;
  size_ = 0;
  rest_.grow(dimension);
}

double QrBasis::project(const double* a) {
  c_.fill(size_ + 4, 0.0);
  extra_.grow(size_ + 4);
  std::copy_n(a, dimension_, rest_.data());
  rest_norm_ = std::sqrt(dot(a, a, dimension_));
  double before = 2 * rest_norm_;
  for (int pass = 0; pass < 2 && size_ > 0 && rest_norm_ < 0.7 * before;
       ++pass) {  // a second pass only if the first removed much
    before = rest_norm_;
    internal::project(Q_.data(), dimension_, size_, rest_.data(), extra_.data());
    subtract(Q_.data(), dimension_, size_, extra_.data(), rest_.data());
    for (Index j = 0; j < size_; ++j) c_[j] += extra_[j];
    rest_norm_ = std::sqrt(dot(rest_.data(), rest_.data(), dimension_));
  }
  return rest_norm_;
}

void QrBasis::push() {
  if (size_ == capacity_) {  // columns of R have a fixed length, so growing moves them
    const Index capacity = std::max<Index>(16, 2 * capacity_);
    Buffer<double> R;
    R.grow(capacity * capacity);
    for (Index j = 0; j < size_; ++j) std::copy_n(r(j), j + 1, R.data() + j * capacity);
    R_.swap(R);
    capacity_ = capacity;
    cosine_.grow(capacity);
    sine_.grow(capacity);
  }
  Q_.grow((size_ + 1) * dimension_);
  double* q = Q_.data() + size_ * dimension_;
  for (Index i = 0; i < dimension_; ++i) q[i] = rest_[i] / rest_norm_;
  std::copy_n(c_.data(), size_, r(size_));
  r(size_)[size_] = rest_norm_;
  ++size_;
}

void QrBasis::widen(const double* a, Index most) {
  constexpr double kRounding = 8 * kEpsilon;
  if (size_ < most && project(a) > kRounding) push();
}

void QrBasis::drop(Index j) {  // columns after j move left and reach below the diagonal: rotations remove that
  --size_;
  for (Index t = j; t < size_; ++t) {
    double* column = r(t);
    std::copy_n(r(t + 1), t + 2, column);
    for (Index l = j; l < t; ++l) {
      const double a = column[l], b = column[l + 1];
      column[l] = cosine_[l] * a + sine_[l] * b;
      column[l + 1] = cosine_[l] * b - sine_[l] * a;
    }
    const double length = std::hypot(column[t], column[t + 1]);
    cosine_[t] = column[t] / length;
    sine_[t] = column[t + 1] / length;
    column[t] = length;
    rotate(Q_.data() + t * dimension_, Q_.data() + (t + 1) * dimension_, dimension_, cosine_[t], sine_[t]);
  }
}

void QrBasis::solve(double* x) const {
  for (Index j = size_ - 1; j >= 0; --j) {
    x[j] /= r(j)[j];
    const Index whole = j & ~Index{3};
    axpy(-x[j], r(j), x, whole);
    for (Index i = whole; i < j; ++i) x[i] -= r(j)[i] * x[j];
  }
}

void QrBasis::solve_transposed(double* x, Index from) const {
  for (Index j = from; j < size_; ++j) {
    const Index whole = j & ~Index{3};
    double rest = x[j] - dot(r(j), x, whole);
    for (Index i = whole; i < j; ++i) rest -= r(j)[i] * x[i];
    x[j] = rest / r(j)[j];
  }
}

}  // namespace attsvm::internal
