#include "margin/streaming/singular_split.h"

#include <Eigen/QR>
#include <cmath>

#include "base/blas.h"
#include "base/limits.h"

namespace attsvm::internal {
namespace {

constexpr double kKnown = 1e-6;  // of the largest value: below, B v/value is no longer orthogonal to the others
constexpr Index kPart = 64;      // rows of a product that one thread takes; by hand

}  // namespace

SingularSplit::SingularSplit(Index d, Index dz, Threads& threads) : d_(d), dz_(dz), threads_(&threads) {
  const Index less = std::min(d, dz), more = std::max(d, dz);
  gram_.reserve(less * less);
  small_.reserve(less * less);
  large_.reserve(more * more);
  shrunk_.reserve(d * less);
  ascending_.grow(less);
  values_.grow(less);
}

bool SingularSplit::compute(const double* B) {
  const Index n = count(), more = std::max(d_, dz_);
  multiply_gram(B);
  if (!symmetric_eigenvalues(true, n, gram_.data(), ascending_.data())) return false;
  for (Index k = 0; k < n; ++k) std::copy_n(gram_.data() + (n - 1 - k) * n, n, small_.data() + k * n);
  multiply_vectors(B);
  Index known = 0;
  for (Index k = 0; k < n; ++k) {
    double* vector = large_.data() + k * more;
    double square = 0;
    for (Index j = 0; j < more; ++j) square += vector[j] * vector[j];
    values_[k] = std::sqrt(square);  // more accurate than the root of a small eigenvalue
    if (known < k || !(values_[k] > kKnown * values_[0])) continue;
    for (Index j = 0; j < more; ++j) vector[j] /= values_[k];
    ++known;
  }
  if (known < more) complete(known);
  return true;
}

/// BᵀB or BBᵀ, whichever is smaller.
void SingularSplit::multiply_gram(const double* B) {
  const Index n = count(), parts = (n + kPart - 1) / kPart;
  const bool rows = d_ < dz_;
  threads_->for_each(parts, [&](Index part) {
    const Index begin = part * kPart, size = std::min(kPart, n - begin);
    double* out = gram_.data() + begin * n;
    if (rows) {
      gemm(false, true, size, n, dz_, 1, B + begin * dz_, dz_, B, dz_, 0, out, n);
    } else {
      gemm(true, false, size, n, d_, 1, B + begin, dz_, B, dz_, 0, out, n);
    }
  });
}

/// large = small Bᵀ, or small B if the smaller side is the left one.
void SingularSplit::multiply_vectors(const double* B) {
  const Index n = count(), more = std::max(d_, dz_), parts = (n + kPart - 1) / kPart;
  const bool rows = d_ < dz_;
  threads_->for_each(parts, [&](Index part) {
    const Index begin = part * kPart, size = std::min(kPart, n - begin);
    gemm(false, !rows, size, more, n, 1, small_.data() + begin * n, n, B, dz_, 0, large_.data() + begin * more, more);
  });
}

/// Fills in orthonormal vectors for those that the matrix does not determine.
void SingularSplit::complete(Index known) {
  const Index more = std::max(d_, dz_);
  Eigen::Map<RowMatrix> vectors(large_.data(), more, more);
  if (known == 0) {
    vectors.setIdentity();
    return;
  }
  const Eigen::MatrixXd basis =
      Eigen::HouseholderQR<Eigen::MatrixXd>(vectors.topRows(known).transpose()).householderQ();
  vectors.bottomRows(more - known) = basis.rightCols(more - known).transpose();
}

Index SingularSplit::rank_above(double level) const {
  Index rank = 0;
  while (rank < count() && values_[rank] > level) ++rank;
  return rank;
}

double SingularSplit::sum_above(double level) const {
  double sum = 0;
  for (Index k = rank_above(level) - 1; k >= 0; --k) sum += values_[k] - level;
  return sum;
}

void SingularSplit::shrink(double level, double* W) {
  const Index rank = rank_above(level);
  for (Index k = 0; k < rank; ++k) {
    for (Index j = 0; j < d_; ++j) shrunk_[k * d_ + j] = (values_[k] - level) * left()[k * d_ + j];
  }
  threads_->for_each((d_ + kPart - 1) / kPart, [&](Index part) {
    const Index begin = part * kPart, size = std::min(kPart, d_ - begin);
    gemm(true, false, size, dz_, rank, 1, shrunk_.data() + begin, d_, right(), dz_, 0, W + begin * dz_, dz_);
  });
}

double largest_singular_value(const double* B, Index d, Index dz) {
  const Index n = std::min(d, dz);
  std::vector<double> gram(static_cast<std::size_t>(n * n)), values(static_cast<std::size_t>(n));
  if (d < dz) {
    gemm(false, true, n, n, dz, 1, B, dz, B, dz, 0, gram.data(), n);
  } else {
    gemm(true, false, n, n, d, 1, B, dz, B, dz, 0, gram.data(), n);
  }
  if (!symmetric_eigenvalues(false, n, gram.data(), values.data())) return kNaN;
  return std::sqrt(std::max(0.0, values.back()));
}

}  // namespace attsvm::internal
