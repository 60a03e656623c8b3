#pragma once

#include <Eigen/Eigenvalues>

// Eigen's large decompositions take many seconds to compile, so decompositions.cpp instantiates them once for all
// users.
extern template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;
extern template Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>& Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>::compute(
    const Eigen::EigenBase<Eigen::MatrixXd>&, int);

namespace attsvm::internal {

inline constexpr Eigen::Index kLapackColumns = 24;  ///< from which LAPACK is faster than Jacobi rotations
/// Matrices whose largest entry is between this and its inverse have squares in the range of double.
inline constexpr double kLeastToSquare = 1e-100;

/// A = U diag(sigma) Vᵀ, largest first; U and V have as many columns as the smaller size of A.
struct ThinSvd {
  Eigen::MatrixXd U, V;
  Eigen::VectorXd sigma;
};

ThinSvd thin_svd(const Eigen::MatrixXd& A);

/// Singular values, largest first.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& A);

}  // namespace attsvm::internal
