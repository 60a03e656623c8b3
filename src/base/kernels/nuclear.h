#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

// Dense loops of the nuclear solver; matrices are column-major. Vector instructions are chosen at run time.

/// C = A B for A (rows × inner) and B (inner × cols); rows is a multiple of 4 and the leading size of A and C.
void multiply(const double* A, Index rows, Index inner, const double* B, Index ldb, Index cols, double* C);

inline void multiply(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B, Eigen::MatrixXd& C) {
  C.resize(A.rows(), B.cols());
  multiply(A.data(), A.rows(), A.cols(), B.data(), B.rows(), B.cols(), C.data());
}

/// C = [0 A; Aᵀ 0] T for A (P × Q, both multiples of 4) and square T. `transposed` has room for Aᵀ.
void multiply_coupled(const double* A, Index P, Index Q, const double* T, double* transposed, double* C);

/// The parts of the Schur matrix of a set of rows. For pairs of symmetric matrices (X, T) on the left and (X', T') on
/// the right, and a pair of matrices (x, t) that couple left and right, entry (k,l) = (δ_kᵀT δ_l)(ζ_kᵀX'ζ_l) + (δ_kᵀX
/// δ_l)(ζ_kᵀT'ζ_l) + (δ_kᵀxζ_l)(δ_lᵀtζ_k) + (δ_kᵀtζ_l)(δ_lᵀxζ_k).
struct SchurParts {
  Index rows, ld;         ///< ld: a multiple of 4, at least rows
  Index features, rank;   ///< size of δ, and of Yᵀδ (see X)
  const double* across;   ///< δᵀ, ld × features
  const double* T;        ///< Tδ, features × rows
  const double *low, *X;  ///< X = Y S Yᵀ: δᵀY, ld × rank, and S Yᵀδ, rank × rows; null: X is T, x is t
  const double *right_X, *right_T;  ///< ζ_qᵀX'ζ_k and ζ_qᵀT'ζ_k, ld × queries
  const double *x, *t;              ///< δ_kᵀxζ_q and δ_kᵀtζ_q, ld × queries
  const Index* query;               ///< query of each row
};

/// Lower triangle of G (ldg ≥ ld), times `factor`. `work` has room for 8 ld numbers.
void schur_matrix(const SchurParts& parts, double factor, double* work, double* G, Index ldg);

}  // namespace attsvm::internal
