#pragma once

#include "attsvm/array.h"

namespace attsvm {

/// C = alpha·op(A) op(B) + beta·C for row-major matrices, op being the transpose where asked for; C is m × n, the inner
/// size k. Runs on the calling thread alone while a SingleThreadBlas is alive.
void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, double alpha, const double* A, Index lda,
          const double* B, Index ldb, double beta, double* C, Index ldc);
void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, float alpha, const float* A, Index lda,
          const float* B, Index ldb, float beta, float* C, Index ldc);

/// Cholesky factor L of a symmetric n × n matrix, in place of its lower triangle. False: not positive definite.
bool cholesky(Index n, double* A, Index lda);
/// The same for a column-major matrix, in place of its lower triangle.
bool cholesky_of_columns(Index n, double* A, Index lda);
/// X ← L⁻¹X, or L⁻ᵀX, for the L of cholesky_of_columns and `count` columns X
void solve_columns(bool transpose, Index n, const double* L, Index ldl, Index count, double* X, Index ldx);
/// Eigenvalues, smallest first, of a symmetric n × n matrix, and if asked for its eigenvectors as the rows of A, which
/// is overwritten in any case. False: they were not found.
bool symmetric_eigenvalues(bool vectors, Index n, double* A, double* values);
/// The column-major A (m,n), which is lost, as U diag(sigma) Vt, largest first; U (m,min), Vt (min,n), both untouched
/// unless vectors are asked for. False: the iteration did not converge.
bool singular_values(bool vectors, Index m, Index n, double* A, double* sigma, double* U, double* Vt);
/// B ← B L⁻ᵀ for m × n B and lower triangular n × n L.
void divide_by_transposed_lower(Index m, Index n, const double* L, Index ldl, double* B, Index ldb);
/// x ← L⁻¹ x, or L⁻ᵀ x
void solve_lower(bool transpose, Index n, const double* L, Index ldl, double* x);

/// While one is alive OpenBLAS uses no threads of its own: we split work into fixed chunks ourselves, so that results
/// do not depend on the number of threads. OpenBLAS keeps this setting for the whole process; the last guard restores
/// it.
class SingleThreadBlas {
 public:
  SingleThreadBlas();
  ~SingleThreadBlas();
  SingleThreadBlas(const SingleThreadBlas&) = delete;
  SingleThreadBlas& operator=(const SingleThreadBlas&) = delete;
};

}  // namespace attsvm
