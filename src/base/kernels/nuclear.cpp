#include "base/kernels/nuclear.h"

#include "base/blas.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/kernels/nuclear.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using V = hn::CappedTag<double, 4>;  // as in dense.cpp: the same sums for all vector widths from four up
constexpr V v;
inline Index lanes() { return static_cast<Index>(hn::Lanes(v)); }

void multiply_lanes(const double* HWY_RESTRICT A, Index rows, Index inner, const double* HWY_RESTRICT B, Index ldb,
                    Index cols, double* HWY_RESTRICT C, Index ldc) {
  const Index w = lanes();
  for (Index j = 0; j < cols; j += 4) {
    const double* b[4];
    double* c[4];
    for (Index e = 0; e < 4; ++e) {
      const Index column = j + e < cols ? j + e : cols - 1;  // past the end: the last one again
      b[e] = B + column * ldb;
      c[e] = C + column * ldc;
    }
    for (Index i = 0; i < rows; i += w) {
      auto a0 = hn::Zero(v), a1 = a0, a2 = a0, a3 = a0;
      const double* a = A + i;
      for (Index f = 0; f < inner; ++f, a += rows) {
        const auto x = hn::LoadU(v, a);
        a0 = hn::MulAdd(x, hn::Set(v, b[0][f]), a0), a1 = hn::MulAdd(x, hn::Set(v, b[1][f]), a1);
        a2 = hn::MulAdd(x, hn::Set(v, b[2][f]), a2), a3 = hn::MulAdd(x, hn::Set(v, b[3][f]), a3);
      }
      hn::StoreU(a0, v, c[0] + i), hn::StoreU(a1, v, c[1] + i), hn::StoreU(a2, v, c[2] + i),
          hn::StoreU(a3, v, c[3] + i);
    }
  }
}

template <bool kPairs>
void schur_columns(const SchurParts& p, double factor, double* HWY_RESTRICT work, double* HWY_RESTRICT G, Index ldg) {
  const Index w = lanes(), ld = p.ld;
  const auto scale = hn::Set(v, kPairs ? factor : 2 * factor);
  for (Index l = 0; l < p.rows; l += 4) {
    const double *T[4], *X[4], *rx[4], *rt[4], *x[4], *t[4];
    double* g[4];
    for (Index c = 0; c < 4; ++c) {
      const Index column = l + c < p.rows ? l + c : p.rows - 1, q = p.query[column] * ld;
      T[c] = p.T + column * p.features, rx[c] = p.right_X + q, t[c] = p.t + q;
      if constexpr (kPairs) X[c] = p.X + column * p.rank, rt[c] = p.right_T + q, x[c] = p.x + q;
      g[c] = G + column * ldg;
      for (Index k = l; k < p.rows; ++k) {
        work[(2 * c) * ld + k] = p.t[p.query[k] * ld + column];
        if constexpr (kPairs) work[(2 * c + 1) * ld + k] = p.x[p.query[k] * ld + column];
      }
      for (Index k = p.rows; k < ld; ++k) work[(2 * c) * ld + k] = work[(2 * c + 1) * ld + k] = 0;
    }
    for (Index k = l; k < ld; k += w) {
      auto a0 = hn::Zero(v), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      const double* across = p.across + k;
      for (Index f = 0; f < p.features; ++f, across += ld) {
        const auto y = hn::LoadU(v, across);
        a0 = hn::MulAdd(y, hn::Set(v, T[0][f]), a0), a1 = hn::MulAdd(y, hn::Set(v, T[1][f]), a1);
        a2 = hn::MulAdd(y, hn::Set(v, T[2][f]), a2), a3 = hn::MulAdd(y, hn::Set(v, T[3][f]), a3);
      }
      if constexpr (kPairs) {
        const double* low = p.low + k;
        for (Index f = 0; f < p.rank; ++f, low += ld) {
          const auto y = hn::LoadU(v, low);
          b0 = hn::MulAdd(y, hn::Set(v, X[0][f]), b0), b1 = hn::MulAdd(y, hn::Set(v, X[1][f]), b1);
          b2 = hn::MulAdd(y, hn::Set(v, X[2][f]), b2), b3 = hn::MulAdd(y, hn::Set(v, X[3][f]), b3);
        }
      }
      const auto put = [&](Index c, auto a, auto b) {
        auto sum = hn::Mul(a, hn::LoadU(v, rx[c] + k));
        if constexpr (kPairs) {
          sum = hn::MulAdd(b, hn::LoadU(v, rt[c] + k), sum);
          sum = hn::MulAdd(hn::LoadU(v, x[c] + k), hn::LoadU(v, work + (2 * c) * ld + k), sum);
          sum = hn::MulAdd(hn::LoadU(v, t[c] + k), hn::LoadU(v, work + (2 * c + 1) * ld + k), sum);
        } else {
          sum = hn::MulAdd(hn::LoadU(v, t[c] + k), hn::LoadU(v, work + (2 * c) * ld + k), sum);
        }
        hn::StoreU(hn::Mul(sum, scale), v, g[c] + k);
      };
      put(0, a0, b0), put(1, a1, b1), put(2, a2, b2), put(3, a3, b3);
    }
  }
}

void schur_lanes(const SchurParts& p, double factor, double* HWY_RESTRICT work, double* HWY_RESTRICT G, Index ldg) {
  if (p.low != nullptr) {
    schur_columns<true>(p, factor, work, G, ldg);
  } else {
    schur_columns<false>(p, factor, work, G, ldg);
  }
}
}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {
namespace {
constexpr Index kBlasWork = 1 << 17;  // multiplications from which OpenBLAS is faster
HWY_EXPORT(multiply_lanes);
HWY_EXPORT(schur_lanes);

void multiply(const double* A, Index rows, Index inner, const double* B, Index ldb, Index cols, double* C, Index ldc) {
  if (rows * inner * cols >= kBlasWork) {  // column-major C = AB is row-major C' = B'A'
    gemm(false, false, cols, rows, inner, 1, B, ldb, A, rows, 0, C, ldc);
  } else {
    HWY_DYNAMIC_DISPATCH(multiply_lanes)(A, rows, inner, B, ldb, cols, C, ldc);
  }
}
}  // namespace

void multiply(const double* A, Index rows, Index inner, const double* B, Index ldb, Index cols, double* C) {
  multiply(A, rows, inner, B, ldb, cols, C, rows);
}
void multiply_coupled(const double* A, Index P, Index Q, const double* T, double* transposed, double* C) {
  const Index N = P + Q;
  for (Index j = 0; j < Q; ++j) {
    for (Index i = 0; i < P; ++i) transposed[i * Q + j] = A[j * P + i];
  }
  multiply(A, P, Q, T + P, N, N, C, N);
  multiply(transposed, Q, P, T, N, N, C + P, N);
}
void schur_matrix(const SchurParts& parts, double factor, double* work, double* G, Index ldg) {
  HWY_DYNAMIC_DISPATCH(schur_lanes)(parts, factor, work, G, ldg);
}
}  // namespace attsvm::internal
#endif
