#include "base/spectrum.h"

#include <Eigen/SVD>
#include <cmath>
#include <limits>

namespace attsvm {
namespace {

constexpr Index kExtended = 1 << 20;  // multiplications up to which the proof affords extended precision

}  // namespace

Eigen::VectorXd singular_values(const RowMatrix& A) {
  if (A.size() == 0) return {};
  return Eigen::BDCSVD<Eigen::MatrixXd>(A).singularValues();
}

void Spectrum::compute(const RowMatrix& A) {
  const double scale = A.size() == 0 ? 0 : A.cwiseAbs().maxCoeff();
  const Index n = std::min(A.rows(), A.cols());
  values_.setZero(n);
  bound_ = scale;
  if (scale == 0 || !std::isfinite(scale)) return;
  if (A.cols() <= A.rows()) {
    side_ = A / scale;
  } else {
    side_ = A.transpose() / scale;
  }
  gram_.noalias() = side_.transpose() * side_;
  eigen_.compute(gram_);
  for (Index k = 0; k < n; ++k) values_(k) = std::sqrt(std::max(0.0, eigen_.eigenvalues()(n - 1 - k))) * scale;
  if (side_.rows() * n * n <= kExtended) {
    prove_in<long double>();
  } else {
    prove_in<double>();
  }
  bound_ *= scale;
}

/// Rounding: a sum of k products has an error of at most k·u/(1 − k·u) times the sum of their absolute values; 2ku
/// covers that and the sums taken here.
template <class Real>
void Spectrum::prove_in() {
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const Index d = side_.rows(), n = side_.cols();
  const Real unit = std::numeric_limits<Real>::epsilon();
  const Matrix V = eigen_.eigenvectors().template cast<Real>(), S = side_.template cast<Real>();
  const Matrix B = S * V, G = B.transpose() * B, O = V.transpose() * V;
  Real widest = 0, skew = 0;
  for (Index i = 0; i < n; ++i) {
    Real row = 0, off = 0;
    for (Index j = 0; j < n; ++j) {
      row += std::abs(G(i, j));
      off += std::abs(O(i, j) - (i == j ? 1 : 0));
    }
    widest = std::max(widest, row);
    skew = std::max(skew, off);
  }
  const auto rows = static_cast<Real>(d), columns = static_cast<Real>(n);
  widest += 2 * (rows + columns) * unit * B.norm() * std::sqrt(columns) * std::sqrt(widest);
  skew += 4 * columns * columns * unit;
  const Real product = std::sqrt(widest) + 2 * columns * unit * S.norm() * std::sqrt(columns) * (1 + skew);
  bound_ = skew < 0.5
               ? static_cast<double>(product / std::sqrt(1 - skew)) * (1 + std::numeric_limits<double>::epsilon())
               : side_.norm() * (1 + static_cast<double>(rows * columns * unit));
}

}  // namespace attsvm
