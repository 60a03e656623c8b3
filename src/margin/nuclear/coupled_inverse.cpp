#include "margin/nuclear/coupled_inverse.h"

#include "base/kernels/nuclear.h"

namespace attsvm::internal {

bool CoupledInverse::factor(const Eigen::MatrixXd& A) {
  const Index Q = A.cols();
  transposed_ = A.transpose();
  gram_.resize(Q, Q);
  multiply(transposed_.data(), Q, A.rows(), A.data(), A.rows(), Q, gram_.data());
  gram_ = -gram_;
  gram_.diagonal().array() += 1;
  factor_.compute(gram_);
  return factor_.info() == Eigen::Success && factor_.matrixLLT().diagonal().allFinite();
}

double CoupledInverse::log_det() const { return 2 * factor_.matrixLLT().diagonal().array().log().sum(); }

void CoupledInverse::invert(const Eigen::MatrixXd& A, double times, Eigen::MatrixXd& T) {
  const Index P = A.rows(), Q = A.cols();
  T.resize(P + Q, P + Q);
  gram_.setIdentity(Q, Q);
  factor_.solveInPlace(gram_);
  gram_ *= times;
  T.bottomRightCorner(Q, Q) = gram_;
  coupling_.resize(P, Q);
  multiply(A.data(), P, Q, gram_.data(), Q, Q, coupling_.data());
  T.topRightCorner(P, Q) = coupling_;
  T.bottomLeftCorner(Q, P) = coupling_.transpose();
  gram_.resize(P, P);
  multiply(coupling_.data(), P, Q, transposed_.data(), Q, P, gram_.data());
  gram_.diagonal().array() += times;
  T.topLeftCorner(P, P) = gram_;
}

}  // namespace attsvm::internal
