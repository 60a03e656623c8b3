#include "base/decompositions.h"

#include <Eigen/SVD>

template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

namespace attsvm {
namespace {

/// Eigen's divide and conquer returns NaN for some matrices of low rank; its Jacobi rotations do not.
template <class Read>
auto decompose(const Eigen::MatrixXd& A, unsigned int parts, const Read& read) {
  const Eigen::BDCSVD<Eigen::MatrixXd> quick(A, parts);
  const bool finite = quick.singularValues().allFinite() &&
                      (parts == 0 || (quick.matrixU().allFinite() && quick.matrixV().allFinite()));
  return finite || !A.allFinite() ? read(quick) : read(Eigen::JacobiSVD<Eigen::MatrixXd>(A, parts));
}

}  // namespace

ThinSvd thin_svd(const Eigen::MatrixXd& A) {
  return decompose(A, Eigen::ComputeThinU | Eigen::ComputeThinV, [](const auto& svd) {
    return ThinSvd{svd.matrixU(), svd.matrixV(), svd.singularValues()};
  });
}

Eigen::VectorXd singular_values(const Eigen::MatrixXd& A) {
  if (A.size() == 0) return {};
  return decompose(A, 0, [](const auto& svd) -> Eigen::VectorXd { return svd.singularValues(); });
}

}  // namespace attsvm
