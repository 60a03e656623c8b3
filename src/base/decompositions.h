#pragma once

#include <Eigen/Eigenvalues>

// Eigen's large decompositions, compiled once in decompositions.cpp instead of wherever they are used: each costs the
// compiler many seconds.
extern template class Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>;

namespace attsvm {

/// A = U diag(sigma) Vᵀ, largest first; U and V have as many columns as the smaller size of A.
struct ThinSvd {
  Eigen::MatrixXd U, V;
  Eigen::VectorXd sigma;
};

ThinSvd thin_svd(const Eigen::MatrixXd& A);

/// Singular values, largest first.
Eigen::VectorXd singular_values(const Eigen::MatrixXd& A);

}  // namespace attsvm
