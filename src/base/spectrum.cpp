#include "base/spectrum.h"

#include <cmath>
#include <limits>

#include "base/blas.h"
#include "base/decompositions.h"

namespace attsvm::internal {
namespace {

constexpr Index kLapack = 48;         // columns from which LAPACK finds the vectors
constexpr Index kExtended = 1 << 20;  // multiplications up to which the proof may use extended precision

}  // namespace

void Spectrum::compute(const RowMatrix& A, double slack) {
  double scale = A.size() == 0 ? 0 : A.cwiseAbs().maxCoeff();
  const Index n = std::min(A.rows(), A.cols());
  values_.setZero(n);
  bound_ = scale;
  skew_ = 1;  // nothing is proven yet
  if (scale == 0 || !std::isfinite(scale)) return;
  scale = std::exp2(std::ilogb(scale));  // a power of two, so that dividing by it is exact
  scale_ = scale;
  transposed_ = A.cols() > A.rows();
  if (transposed_) {
    side_ = A.transpose() / scale;
  } else {
    side_ = A / scale;
  }
  gram_.noalias() = side_.transpose() * side_;
  find_vectors();
  for (Index k = 0; k < n; ++k) values_(k) = std::sqrt(std::max(0.0, ascending_(n - 1 - k)));
  prove_in<double>();
  if (bound_ > (1 + slack) * values_(0) && side_.rows() * n * n <= kExtended) prove_in<long double>();
  values_ *= scale;
  bound_ *= scale;
}

/// Eigen is faster on small matrices, LAPACK on large ones.
void Spectrum::find_vectors() {
  if (gram_.rows() > kLapack) {
    const SingleThreadBlas single_thread;
    ascending_.resize(gram_.rows());
    vectors_ = gram_;
    if (symmetric_eigenvalues(true, gram_.rows(), vectors_.data(), ascending_.data())) return;
  }
  eigen_.compute(gram_);
  ascending_ = eigen_.eigenvalues();
  vectors_ = eigen_.eigenvectors();
}

/// Rounding: a sum of k products has an error of at most k·u/(1 − k·u) times the sum of their absolute values; 2ku
/// covers that and the sums taken here.
template <class Real>
void Spectrum::prove_in() {
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;
  const Index d = side_.rows(), n = side_.cols();
  const Real unit = std::numeric_limits<Real>::epsilon() / 2;  // u
  const Matrix V = vectors_.template cast<Real>(), S = side_.template cast<Real>();
  const Matrix B = S * V;
  const auto gram_of = [n](const Matrix& M) -> Matrix {
    Matrix lower = Matrix::Zero(n, n);
    lower.template selfadjointView<Eigen::Lower>().rankUpdate(M.transpose());
    return lower.template selfadjointView<Eigen::Lower>();
  };
  const Matrix G = gram_of(B), O = gram_of(V);
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
  const Real gram_error = 2 * (rows + columns) * unit * B.norm() * std::sqrt(columns) * std::sqrt(widest);
  widest += gram_error;
  skew += 4 * columns * columns * unit;
  const Real product_error = 2 * columns * unit * S.norm() * std::sqrt(columns) * (1 + skew);
  const Real product = std::sqrt(widest) + product_error;
  proven_gram_ = G.template cast<double>();
  gram_error_ = static_cast<double>(gram_error);
  product_error_ = static_cast<double>(product_error);
  skew_ = static_cast<double>(skew);
  bound_ = skew < 0.5
               ? static_cast<double>(product / std::sqrt(1 - skew)) * (1 + 4 * std::numeric_limits<double>::epsilon())
               : side_.norm() * (1 + static_cast<double>(2 * rows * columns * unit));
}

double Spectrum::bound_beyond(Index rank) const {
  constexpr double kUp = 1 + 16 * std::numeric_limits<double>::epsilon();  // for the rounding of these sums
  const Index rest = values_.size() - rank;                                // columns with the smaller singular values
  if (rest <= 0) return 0;
  if (!(skew_ < 0.5)) return bound_;
  const double sums = rest == 1 ? std::abs(proven_gram_(0, 0))
                                : proven_gram_.topLeftCorner(rest, rest).cwiseAbs().rowwise().sum().maxCoeff();
  const double size = static_cast<double>(rest) * std::numeric_limits<double>::epsilon();
  const double square = sums * (1 + size) + gram_error_;
  return std::min(bound_, (std::sqrt(square) + product_error_) / std::sqrt(1 - skew_) * scale_ * kUp);
}

double Spectrum::misfit(const Eigen::MatrixXd& U, const Eigen::MatrixXd& V) const {
  const double factor = scale_ / bound_;
  Eigen::MatrixXd tall = Eigen::MatrixXd::Zero(side_.rows(), U.cols()), flat(side_.cols(), U.cols());
  flat.setZero();
  (transposed_ ? flat : tall).topRows(U.rows()) = U;
  (transposed_ ? tall : flat).topRows(V.rows()) = V;
  const double one = (factor * (side_ * flat) - tall).squaredNorm();
  const double other = (factor * (side_.transpose() * tall) - flat).squaredNorm();
  return std::sqrt((one + other) / 2);
}

}  // namespace attsvm::internal
