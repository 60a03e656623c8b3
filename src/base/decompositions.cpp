#include "base/decompositions.h"

#include <Eigen/SVD>
#include <algorithm>
#include <functional>

#include "base/blas.h"
#include "base/kernels/dense.h"
#include "base/kernels/jacobi.h"

template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;
template Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>::compute(
    const Eigen::EigenBase<Eigen::MatrixXd>&, int);

namespace attsvm::internal {
// Eigen's divide and conquer is not used: for some matrices of low rank it returns NaN, or vectors that are not
// singular vectors.
ThinSvd thin_svd(const Eigen::MatrixXd& A) {
  const Eigen::Index small = std::min(A.rows(), A.cols());
  if (small == 0) return {Eigen::MatrixXd(A.rows(), 0), Eigen::MatrixXd(A.cols(), 0), {}};
  if (small >= kLapackColumns) {
    const SingleThreadBlas single_thread;
    ThinSvd svd{Eigen::MatrixXd(A.rows(), small), {}, Eigen::VectorXd(small)};
    Eigen::MatrixXd lost = A, Vt(small, A.cols());
    if (singular_values(true, A.rows(), A.cols(), lost.data(), svd.sigma.data(), svd.U.data(), Vt.data())) {
      svd.V = Vt.transpose();
      return svd;
    }
  }
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(A, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {svd.matrixU(), svd.matrixV(), svd.singularValues()};
}

Eigen::VectorXd singular_values(const Eigen::MatrixXd& A) {
  const Eigen::Index small = std::min(A.rows(), A.cols());
  if (small == 0) return {};
  if (small >= kLapackColumns) {
    const SingleThreadBlas single_thread;
    Eigen::VectorXd sigma(small);
    Eigen::MatrixXd lost = A;
    double unused = 0;
    if (singular_values(false, A.rows(), A.cols(), lost.data(), sigma.data(), &unused, &unused)) return sigma;
  }
  const Eigen::Index tall = pad4(std::max(A.rows(), A.cols()));
  Eigen::MatrixXd columns = Eigen::MatrixXd::Zero(tall, small);
  if (A.rows() >= A.cols()) {
    columns.topRows(A.rows()) = A;
  } else {
    columns.topRows(A.cols()) = A.transpose();
  }
  const double largest = columns.cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  if (kLeastToSquare < largest && largest < 1 / kLeastToSquare && orthogonalize(columns.data(), tall, tall, small)) {
    Eigen::VectorXd sigma = columns.colwise().norm();
    std::sort(sigma.begin(), sigma.end(), std::greater<>());
    return sigma;
  }
  return Eigen::JacobiSVD<Eigen::MatrixXd>(A).singularValues();
}

}  // namespace attsvm::internal
