#include "base/blas.h"

#include <cblas.h>

#include <cstddef>
#include <mutex>

// LAPACK comes with OpenBLAS; the last argument is Fortran's hidden length of the text.
extern "C" void dpotrf_(const char* triangle, const blasint* n, double* A, const blasint* lda, blasint* info,
                        std::size_t length);

namespace attsvm {
namespace {

std::mutex guard_mutex;
int guards = 0, threads_before = 1;

CBLAS_TRANSPOSE op(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }
blasint narrow(Index n) { return static_cast<blasint>(n); }

}  // namespace

void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, double alpha, const double* A, Index lda,
          const double* B, Index ldb, double beta, double* C, Index ldc) {
  cblas_dgemm(CblasRowMajor, op(transpose_a), op(transpose_b), narrow(m), narrow(n), narrow(k), alpha, A, narrow(lda),
              B, narrow(ldb), beta, C, narrow(ldc));
}

void gemm(bool transpose_a, bool transpose_b, Index m, Index n, Index k, float alpha, const float* A, Index lda,
          const float* B, Index ldb, float beta, float* C, Index ldc) {
  cblas_sgemm(CblasRowMajor, op(transpose_a), op(transpose_b), narrow(m), narrow(n), narrow(k), alpha, A, narrow(lda),
              B, narrow(ldb), beta, C, narrow(ldc));
}

bool cholesky(Index n, double* A, Index lda) {
  const blasint size = narrow(n), stride = narrow(lda);
  blasint info = 0;
  dpotrf_("U", &size, A, &stride, &info, 1);  // the upper triangle of a column-major matrix is our lower one
  return info == 0;
}

bool cholesky_of_columns(Index n, double* A, Index lda) {
  const blasint size = narrow(n), stride = narrow(lda);
  blasint info = 0;
  dpotrf_("L", &size, A, &stride, &info, 1);
  return info == 0;
}

void solve_columns(Index n, const double* L, Index ldl, double* x) {
  for (const CBLAS_TRANSPOSE side : {CblasNoTrans, CblasTrans})
    cblas_dtrsv(CblasColMajor, CblasLower, side, CblasNonUnit, narrow(n), L, narrow(ldl), x, 1);
}

void divide_by_transposed_lower(Index m, Index n, const double* L, Index ldl, double* B, Index ldb) {
  cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, narrow(m), narrow(n), 1, L, narrow(ldl),
              B, narrow(ldb));
}

void solve_lower(bool transpose, Index n, const double* L, Index ldl, double* x) {
  cblas_dtrsv(CblasRowMajor, CblasLower, op(transpose), CblasNonUnit, narrow(n), L, narrow(ldl), x, 1);
}

SingleThreadBlas::SingleThreadBlas() {
  const std::lock_guard lock(guard_mutex);
  if (guards++ == 0) {
    threads_before = openblas_get_num_threads();
    openblas_set_num_threads(1);
  }
}

SingleThreadBlas::~SingleThreadBlas() {
  const std::lock_guard lock(guard_mutex);
  if (--guards == 0) openblas_set_num_threads(threads_before);
}

}  // namespace attsvm
