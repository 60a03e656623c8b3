#include "train/products.h"

#include <algorithm>

#include "base/blas.h"

namespace attsvm::internal {
namespace {

bool small(Index m, Index n, Index k) { return m * n * k <= 32'768; }

void add(double* __restrict to, double factor, const double* __restrict from, Index size) {
  for (Index j = 0; j < size; ++j) to[j] += factor * from[j];
}

}  // namespace

void dots(const double* X, Index rows, Index d, const double* u, double* out) {
  Index t = 0;
  for (; t + 4 <= rows; t += 4) {  // four rows at a time; each sum keeps its order
    const double *a = X + t * d, *b = a + d, *c = b + d, *e = c + d;
    double sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (Index j = 0; j < d; ++j) {
      sum0 += a[j] * u[j];
      sum1 += b[j] * u[j];
      sum2 += c[j] * u[j];
      sum3 += e[j] * u[j];
    }
    out[t] = sum0;
    out[t + 1] = sum1;
    out[t + 2] = sum2;
    out[t + 3] = sum3;
  }
  for (; t < rows; ++t) {
    double sum = 0;
    for (Index j = 0; j < d; ++j) sum += X[t * d + j] * u[j];
    out[t] = sum;
  }
}

void times_transposed(const double* A, const double* B, Index m, Index n, Index k, double* C) {
  if (!small(m, n, k)) return gemm(false, true, m, n, k, 1.0, A, k, B, k, 0.0, C, n);
  for (Index i = 0; i < m; ++i) dots(B, n, k, A + i * k, C + i * n);
}

void transposed_times(const double* A, const double* B, Index m, Index n, Index k, Index first, Index last, double* C) {
  if (!small(last - first, n, k)) {
    return gemm(true, false, last - first, n, k, 1.0, A + first, m, B, n, 0.0, C + first * n, n);
  }
  std::fill(C + first * n, C + last * n, 0.0);
  for (Index l = 0; l < k; ++l) {
    for (Index i = first; i < last; ++i) add(C + i * n, A[l * m + i], B + l * n, n);
  }
}

void times(const double* A, const double* B, Index m, Index n, Index k, double* C) {
  if (!small(m, n, k)) return gemm(false, false, m, n, k, 1.0, A, k, B, n, 0.0, C, n);
  std::fill(C, C + m * n, 0.0);
  for (Index i = 0; i < m; ++i) {
    for (Index l = 0; l < k; ++l) add(C + i * n, A[i * k + l], B + l * n, n);
  }
}

}  // namespace attsvm::internal
