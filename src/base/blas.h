#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

/// C = alpha·op(A) op(B) + beta·C for row-major matrices; C is m × n, the inner size k, and op is the transpose if the
/// flag is set. Runs on the calling thread only while a SingleThreadBlas is alive.
void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, double alpha, const double* A, Index lda,
          const double* B, Index ldb, double beta, double* C, Index ldc);
void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, float alpha, const float* A, Index lda,
          const float* B, Index ldb, float beta, float* C, Index ldc);

/// Replaces the lower triangle of a symmetric, row-major n × n matrix by its Cholesky factor L. False: not positive
/// definite.
bool cholesky(Index n, double* A, Index lda);
/// The same for a column-major matrix.
bool cholesky_of_columns(Index n, double* A, Index lda);
/// X ← L⁻¹X, or L⁻ᵀX, for the L of cholesky_of_columns; X has `count` columns.
void solve_columns(bool transpose, Index n, const double* L, Index ldl, Index count, double* X, Index ldx);
/// Eigenvalues of a symmetric n × n matrix, smallest first. Overwrites A: with the eigenvectors as its rows if
/// `vectors` is set. False: the iteration did not converge.
bool symmetric_eigenvalues(bool vectors, Index n, double* A, double* values);
/// Splits the column-major A (m,n) into U diag(sigma) Vt, largest singular value first; U is (m,min), Vt is (min,n).
/// Both are written only if `vectors` is set; A is overwritten. False: the iteration did not converge.
bool singular_values(bool vectors, Index m, Index n, double* A, double* sigma, double* U, double* Vt);
/// B ← B L⁻ᵀ for m × n B and lower triangular n × n L.
void divide_by_transposed_lower(Index m, Index n, const double* L, Index ldl, double* B, Index ldb);
/// x ← L⁻¹ x, or L⁻ᵀ x
void solve_lower(bool transpose, Index n, const double* L, Index ldl, double* x);

/// While one is alive, OpenBLAS starts no threads of its own. Solvers split their work into fixed chunks themselves, so
/// that results do not depend on the number of threads. The setting is global to the process; the last guard to go
/// restores it.
class SingleThreadBlas {
 public:
  SingleThreadBlas();
  ~SingleThreadBlas();
  SingleThreadBlas(const SingleThreadBlas&) = delete;
  SingleThreadBlas& operator=(const SingleThreadBlas&) = delete;
};

}  // namespace attsvm::internal
