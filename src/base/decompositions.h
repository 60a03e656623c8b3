#pragma once

#include <Eigen/Eigenvalues>

// Eigen's large decompositions take many seconds to compile, so decompositions.cpp instantiates them once for all
// users.
extern template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;
extern template Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>::compute(
    const Eigen::EigenBase<Eigen::MatrixXd>&, int);

namespace attsvm::internal {

/// A = U diag(sigma) Vᵀ, largest first; U and V have as many columns as the smaller size of A.
struct ThinSvd {
  Eigen::MatrixXd U, V;
  Eigen::VectorXd sigma;
};

ThinSvd thin_svd(const Eigen::MatrixXd& A);

/// Singular values, largest first.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& A);

}  // namespace attsvm::internal
