#include "train/directions.h"

#include <cmath>
#include <limits>

#include "base/decompositions.h"

namespace attsvm::internal {

double safe_norm(const RowMatrix& matrix) {
  const double norm = matrix.norm();
  return norm > 1e-150 && norm < 1e150 ? norm : matrix.stableNorm();
}

/// Replaces sizes x ≥ 0 by those of the steepest direction of the power norm, x^{q−1}/‖x‖_q^{q−1} with q = P/(P−1).
/// Returns ‖x‖_q. The first of the largest stands for all of them if P = 1.
double SteepestDirection::powers(Eigen::Ref<Eigen::VectorXd> sizes) {
  Index first = 0;
  const double top = sizes.maxCoeff(&first);
  if (norm_.power == 1) {
    sizes.setZero();
    sizes[first] = 1;
    return top;
  }
  double sum = 0;
  const double dual = norm_.dual().power;
  for (double& x : sizes) {
    if (x <= std::numeric_limits<double>::denorm_min()) {  // underflown: the sign of an average is all that is left
      x = norm_.power < std::numeric_limits<double>::infinity() || x == 0 ? 0 : 1;
      continue;
    }
    x /= top;
    const double grown = dual == 1 ? 1 : std::pow(x, dual - 1);
    sum += grown * x;
    x = grown;
  }
  sizes /= std::pow(sum, (dual - 1) / dual);
  return top * std::pow(sum, 1 / dual);
}

/// The direction of an entrywise norm; returns the dual norm.
double SteepestDirection::entries(const RowMatrix& g) {
  direction_ = g.cwiseAbs();
  const double dual = powers(Eigen::Map<Eigen::VectorXd>(direction_.data(), direction_.size()));
  for (Index j = 0; j < g.size(); ++j) direction_.data()[j] = std::copysign(direction_.data()[j], g.data()[j]);
  return dual;
}

/// The direction of a Schatten norm; returns the dual norm.
double SteepestDirection::singular_values(const RowMatrix& g) {
  const double top = g.cwiseAbs().maxCoeff();
  ThinSvd svd = thin_svd(g / top);
  const Index rank = (svd.sigma.array() > kRankTolerance * svd.sigma[0]).count();
  Eigen::VectorXd sizes = svd.sigma.head(rank);
  const double dual = top * powers(sizes);
  direction_ = svd.U.leftCols(rank) * sizes.asDiagonal() * svd.V.leftCols(rank).transpose();
  return dual;
}

void SteepestDirection::compute(const RowMatrix& g, double epsilon) {
  const bool vector = g.rows() == 1 || g.cols() == 1;  // its singular value is its length
  if (norm_.is_frobenius() || (vector && !norm_.is_entrywise())) {
    along_ = &g;
    divisor_ = safe_norm(g) + epsilon;
    return;
  }
  const double dual = norm_.is_entrywise() ? entries(g) : singular_values(g);
  along_ = &direction_;
  divisor_ = 1 + epsilon / dual;
}

void newton_schulz(const RowMatrix& g, double epsilon, Index iterations, RowMatrix& out) {
  constexpr double kFirst = 3.4445, kThird = -4.7750, kFifth = 2.0315;
  const bool tall = g.rows() > g.cols();
  RowMatrix X = g / (safe_norm(g) + epsilon);
  if (tall) X.transposeInPlace();
  for (Index k = 0; k < iterations; ++k) {
    const RowMatrix A = X * X.transpose(), B = kThird * A + kFifth * A * A;
    X = kFirst * X + B * X;
  }
  if (tall) X.transposeInPlace();
  out = std::move(X);
}

}  // namespace attsvm::internal
