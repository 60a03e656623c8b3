// Linear algebra for tests: plain loops in long double that share nothing with the library's decompositions, compiled
// once (Eigen's own take a minute per file that uses them).
#pragma once

#include <random>

#include "attsvm/array.h"

namespace attsvm::test {

/// A = U diag(sigma) Vᵀ, largest first; U and V have as many columns as the smaller size of A. Where sigma is zero,
/// the column of the larger side's matrix is zero too.
struct Svd {
  Eigen::MatrixXd U, V;
  Eigen::VectorXd sigma;
};
Svd svd_of(const Eigen::MatrixXd& A);

/// How many singular values exceed `share` of the largest.
Index rank_of(const Eigen::MatrixXd& A, double share);

/// Orthonormal columns with the span of A's columns, which must be independent.
Eigen::MatrixXd orthonormal(const Eigen::MatrixXd& A);

RowMatrix gaussian(Index rows, Index cols, std::mt19937_64& engine);
RowMatrix orthogonal(Index n, std::mt19937_64& engine);

}  // namespace attsvm::test
