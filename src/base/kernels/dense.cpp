#include "base/kernels/dense.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/kernels/dense.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using V = hn::CappedTag<double, 4>;  // four lanes, so that sums are the same on machines with wider vectors
constexpr V v;
inline Index lanes() { return static_cast<Index>(hn::Lanes(v)); }

double dot_lanes(const double* x, const double* y, Index n) {
  auto a = hn::Zero(v), b = a;
  const Index w = lanes();
  Index i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    a = hn::MulAdd(hn::LoadU(v, x + i), hn::LoadU(v, y + i), a);
    b = hn::MulAdd(hn::LoadU(v, x + i + w), hn::LoadU(v, y + i + w), b);
  }
  for (; i < n; i += w) a = hn::MulAdd(hn::LoadU(v, x + i), hn::LoadU(v, y + i), a);
  return hn::GetLane(hn::SumOfLanes(v, hn::Add(a, b)));
}
void axpy_lanes(double c, const double* HWY_RESTRICT x, double* HWY_RESTRICT y, Index n) {
  const auto s = hn::Set(v, c);
  for (Index i = 0; i < n; i += lanes()) hn::StoreU(hn::MulAdd(s, hn::LoadU(v, x + i), hn::LoadU(v, y + i)), v, y + i);
}

// y = A x in strips of 16 rows held in registers; only the first `rows` rows of A are read.
HWY_INLINE void combine_strips(const double* HWY_RESTRICT A, Index ld, Index rows, Index n,
                               const double* HWY_RESTRICT x, double* HWY_RESTRICT y) {
  const Index w = lanes();
  Index i = 0;
  for (; i + 4 * w <= rows; i += 4 * w) {
    auto a = hn::Zero(v), b = a, c = a, d = a;
    const double* p = A + i;
    for (Index j = 0; j < n; ++j, p += ld) {
      const auto s = hn::Set(v, x[j]);
      a = hn::MulAdd(s, hn::LoadU(v, p), a), b = hn::MulAdd(s, hn::LoadU(v, p + w), b);
      c = hn::MulAdd(s, hn::LoadU(v, p + 2 * w), c), d = hn::MulAdd(s, hn::LoadU(v, p + 3 * w), d);
    }
    hn::StoreU(a, v, y + i), hn::StoreU(b, v, y + i + w), hn::StoreU(c, v, y + i + 2 * w),
        hn::StoreU(d, v, y + i + 3 * w);
  }
  for (; i + 2 * w <= rows; i += 2 * w) {
    auto a = hn::Zero(v), b = a;
    const double* p = A + i;
    for (Index j = 0; j < n; ++j, p += ld) {
      const auto s = hn::Set(v, x[j]);
      a = hn::MulAdd(s, hn::LoadU(v, p), a), b = hn::MulAdd(s, hn::LoadU(v, p + w), b);
    }
    hn::StoreU(a, v, y + i), hn::StoreU(b, v, y + i + w);
  }
  for (; i < rows; i += w) {
    auto a = hn::Zero(v);
    const double* p = A + i;
    for (Index j = 0; j < n; ++j, p += ld) a = hn::MulAdd(hn::Set(v, x[j]), hn::LoadU(v, p), a);
    hn::StoreU(a, v, y + i);
  }
}
void combine_lanes(const double* A, Index ld, Index n, const double* x, double* y) {
  combine_strips(A, ld, ld, n, x, y);
}
HWY_INLINE void rank_one(const double* HWY_RESTRICT g, Index dp, const double* HWY_RESTRICT z, Index dz,
                         double* HWY_RESTRICT W) {
  for (Index j = 0; j < dz; ++j, W += dp) axpy_lanes(z[j], g, W, dp);
}
void evaluate_lanes(const RowBlocks& B, const double* W, double* work, double* out) {
  double* s = work + B.dp;
  for (Index t = 0; t < B.count; ++t) {
    const RowBlock& q = B.block[t];
    combine_lanes(W, B.dp, B.dz, B.zeta + q.query * B.zp, work);
    combine_strips(B.across + q.across, q.ld, pad4(q.count), B.d, work, s);
    for (Index k = 0; k < q.count; ++k) out[q.first + k] = s[k];
  }
}
// Takes blocks of four rows and two vectors of columns of A, and sums each over all pairs in registers.
void add_outers_lanes(const double* const* l, const double* const* r, Index count, Index rows, Index columns,
                      double* A) {
  const Index w = lanes();
  for (Index i = 0; i < rows; i += 4) {
    const Index i1 = std::min(i + 1, rows - 1), i2 = std::min(i + 2, rows - 1), i3 = std::min(i + 3, rows - 1);
    double* a[4] = {A + i * columns, A + i1 * columns, A + i2 * columns, A + i3 * columns};
    const Index p = std::min<Index>(4, rows - i);
    for (Index j = 0; j < columns; j += 2 * w) {
      const Index e = j + w < columns ? w : 0;  // second vector, or the first again at the edge
      auto x0 = hn::Zero(v), x1 = x0, x2 = x0, x3 = x0, y0 = x0, y1 = x0, y2 = x0, y3 = x0;
      for (Index t = 0; t < count; ++t) {
        const auto left = hn::LoadU(v, r[t] + j), right = hn::LoadU(v, r[t] + j + e);
        const auto s0 = hn::Set(v, l[t][i]), s1 = hn::Set(v, l[t][i1]), s2 = hn::Set(v, l[t][i2]),
                   s3 = hn::Set(v, l[t][i3]);
        x0 = hn::MulAdd(s0, left, x0), y0 = hn::MulAdd(s0, right, y0);
        x1 = hn::MulAdd(s1, left, x1), y1 = hn::MulAdd(s1, right, y1);
        x2 = hn::MulAdd(s2, left, x2), y2 = hn::MulAdd(s2, right, y2);
        x3 = hn::MulAdd(s3, left, x3), y3 = hn::MulAdd(s3, right, y3);
      }
      const auto put = [&](Index q, auto x, auto y) {
        if (q >= p) return;
        hn::StoreU(hn::Add(x, hn::LoadU(v, a[q] + j)), v, a[q] + j);
        if (e > 0) hn::StoreU(hn::Add(y, hn::LoadU(v, a[q] + j + e)), v, a[q] + j + e);
      };
      put(0, x0, y0), put(1, x1, y1), put(2, x2, y2), put(3, x3, y3);
    }
  }
}
void weigh_lanes(const RowBlocks& B, const double* x, double* work, double* W) {
  for (Index i = 0; i < B.dp * B.dz; ++i) W[i] = 0;
  const double *g[kOuters], *z[kOuters];
  for (Index first = 0; first < B.count; first += kOuters) {
    const Index count = std::min(kOuters, B.count - first);
    for (Index t = 0; t < count; ++t) {
      const RowBlock& q = B.block[first + t];
      combine_lanes(B.delta + q.first * B.dp, B.dp, q.count, x + q.first, work + t * B.dp);
      g[t] = work + t * B.dp;
      z[t] = B.zeta + q.query * B.zp;
    }
    add_outers_lanes(z, g, count, B.dz, B.dp, W);
  }
}
// z = x ∘ y
HWY_INLINE void times(const double* HWY_RESTRICT x, const double* HWY_RESTRICT y, double* HWY_RESTRICT z, Index n) {
  for (Index i = 0; i < n; i += lanes()) hn::StoreU(hn::Mul(hn::LoadU(v, x + i), hn::LoadU(v, y + i)), v, z + i);
}
// Columns G of A c for `count` ≤ 4 vectors c of size n and stride ldc; A has `rows` rows.
HWY_INLINE void combine_four(const double* HWY_RESTRICT A, Index ld, Index rows, Index n, const double* HWY_RESTRICT c,
                             Index ldc, Index count, double* HWY_RESTRICT G, Index ldg) {
  const Index w = lanes();
  const double *c1 = c + (count > 1 ? ldc : 0), *c2 = c + (count > 2 ? 2 * ldc : 0),
               *c3 = c + (count > 3 ? 3 * ldc : 0);
  for (Index i = 0; i < rows; i += 2 * w) {
    const Index e = i + w < rows ? w : 0;  // second vector, or the first again at the edge
    auto x0 = hn::Zero(v), x1 = x0, x2 = x0, x3 = x0, y0 = x0, y1 = x0, y2 = x0, y3 = x0;
    const double* p = A + i;
    for (Index f = 0; f < n; ++f, p += ld) {
      const auto low = hn::LoadU(v, p), high = hn::LoadU(v, p + e);
      const auto s0 = hn::Set(v, c[f]), s1 = hn::Set(v, c1[f]), s2 = hn::Set(v, c2[f]), s3 = hn::Set(v, c3[f]);
      x0 = hn::MulAdd(s0, low, x0), y0 = hn::MulAdd(s0, high, y0);
      x1 = hn::MulAdd(s1, low, x1), y1 = hn::MulAdd(s1, high, y1);
      x2 = hn::MulAdd(s2, low, x2), y2 = hn::MulAdd(s2, high, y2);
      x3 = hn::MulAdd(s3, low, x3), y3 = hn::MulAdd(s3, high, y3);
    }
    const auto put = [&](Index q, auto x, auto y) {
      if (q >= count) return;
      hn::StoreU(x, v, G + q * ldg + i);
      hn::StoreU(y, v, G + q * ldg + i + e);
    };
    put(0, x0, y0), put(1, x1, y1), put(2, x2, y2), put(3, x3, y3);
  }
}
void multiply_lanes(const double* A, Index lda, Index rows, Index inner, const double* B, Index ldb, Index columns,
                    double* C, Index ldc) {
  for (Index j = 0; j < columns; j += 4) {
    combine_four(A, lda, pad4(rows), inner, B + j * ldb, ldb, std::min<Index>(4, columns - j), C + j * ldc, ldc);
  }
}
// A block's padding is written over the rows after it, which belong to a later block.
void weighted_gram_lanes(const RowBlocks& B, const double* F, const double* C, Index corner, double* work, double* G,
                         Index ld) {
  const Index w = lanes(), cp = pad4(corner);
  double *both = work, *h = both + B.zp, *c = h + B.dp, *turned = c + 4 * B.dp, *seen = turned + 4 * cp;
  for (Index b = 0; b < B.count; ++b) {
    const RowBlock& right = B.block[b];
    const double* zb = B.zeta + right.query * B.zp;
    for (Index a = b; a < B.count; ++a) {
      const RowBlock& left = B.block[a];
      const double* za = B.zeta + left.query * B.zp;
      times(za, zb, both, B.zp);
      combine_strips(F, B.dp, B.dp, B.dz, both, h);
      for (Index l = 0; l < right.count; l += 4) {
        const Index count = std::min<Index>(4, right.count - l);
        for (Index q = 0; q < count; ++q) {
          const double* delta = B.delta + (right.first + l + q) * B.dp;
          double* column = c + q * B.dp;
          times(h, delta, column, B.dp);
          if (C != nullptr) times(za, delta, turned + q * cp, cp);
        }
        if (C != nullptr) combine_four(C, cp, cp, corner, turned, cp, count, seen, cp);
        for (Index q = 0; C != nullptr && q < count; ++q) {
          double *column = c + q * B.dp, *of_column = seen + q * cp;
          for (Index i = 0; i < cp; i += w) {
            const auto sum = hn::MulAdd(hn::LoadU(v, zb + i), hn::LoadU(v, of_column + i), hn::LoadU(v, column + i));
            hn::StoreU(sum, v, column + i);
          }
        }
        combine_four(B.across + left.across, left.ld, pad4(left.count), B.d, c, B.dp, count,
                     G + (right.first + l) * ld + left.first, ld);
      }
    }
  }
}
Index epoch_lanes(const RowBlocks& B, const double* b, const double* low, Index passes, double* x, double* work,
                  double* W) {
  double *u = work, *s = work + B.dp;
  Index changed = 0;
  for (Index t = 0; t < B.count; ++t) {
    const RowBlock& q = B.block[t];
    const Index ld = pad4(q.count), o = q.first;  // every block has its own δᵀ and δδᵀ, so q.ld is the same
    double* old = s + ld;
    const double* z = B.zeta + q.query * B.zp;
    combine_lanes(W, B.dp, B.dz, z, u);
    combine_lanes(B.across + q.across, ld, B.d, u, s);
    for (Index k = 0; k < q.count; ++k) s[k] = b[o + k] - s[k], old[k] = x[o + k];
    for (Index p = 0; p < passes; ++p)
      for (Index k = 0; k < q.count; ++k) {
        const double y = std::max(x[o + k] + s[k], low[o + k]), step = x[o + k] - y;
        if (step != 0) axpy_lanes(step, B.gram + q.gram + k * ld, s, ld), x[o + k] = y;
      }
    for (Index k = 0; k < q.count; ++k) changed += (x[o + k] != 0) != (old[k] != 0), old[k] = x[o + k] - old[k];
    combine_lanes(B.delta + o * B.dp, B.dp, q.count, old, u);
    rank_one(u, B.dp, z, B.dz, W);
  }
  return changed;
}
/// x_j ← (x_j − Σ_{i>j} c_j[i] x_i) / c_j[j] from the last column c_j to the first. Takes four columns at a time and
/// first subtracts what the columns after them contribute, which keeps the chain of dependent operations short.
void solve_upper_lanes(const double* L, Index ld, Index s, double* x) {
  for (Index j = (s - 1) & ~Index{3}; j >= 0; j -= 4) {
    const Index p = s - j < 4 ? s - j : 4;
    double t[4] = {}, inverse[4] = {};
    for (Index q = 0; q < p; ++q) inverse[q] = 1 / L[(j + q) * (ld + 1)];
    if (j + 4 < s) {
      const double* c = L + j * ld;
      auto a0 = hn::Zero(v), a1 = a0, a2 = a0, a3 = a0;
      const Index end = j + 4 + (s - j - 4) / 4 * 4;
      for (Index i = end; i < s; ++i)
        for (Index q = 0; q < 4; ++q) t[q] += c[q * ld + i] * x[i];
      for (Index i = end - lanes(); i >= j + 4; i -= lanes()) {
        const auto y = hn::LoadU(v, x + i);
        a0 = hn::MulAdd(hn::LoadU(v, c + i), y, a0), a1 = hn::MulAdd(hn::LoadU(v, c + ld + i), y, a1);
        a2 = hn::MulAdd(hn::LoadU(v, c + 2 * ld + i), y, a2), a3 = hn::MulAdd(hn::LoadU(v, c + 3 * ld + i), y, a3);
      }
      t[0] += hn::GetLane(hn::SumOfLanes(v, a0)), t[1] += hn::GetLane(hn::SumOfLanes(v, a1));
      t[2] += hn::GetLane(hn::SumOfLanes(v, a2)), t[3] += hn::GetLane(hn::SumOfLanes(v, a3));
    }
    for (Index q = p - 1; q >= 0; --q) {
      const double y = (x[j + q] - t[q]) * inverse[q];
      for (Index u = 0; u < q; ++u) t[u] += L[(j + u) * ld + j + q] * y;
      x[j + q] = y;
    }
  }
}
void factor_solve_lanes(double* HWY_RESTRICT L, Index ld, Index s, double tiny, double* x) {
  const Index w = lanes();
  for (Index j = 0; j < s; j += 4) {
    const Index p = s - j < 4 ? s - j : 4;  // panel of four columns: subtract all earlier columns, then factor it
    double* c[4];
    for (Index q = 0; q < 4; ++q) c[q] = L + (q < p ? j + q : j + p - 1) * ld;
    if (p == 4 && j) {
      Index i = j;
      for (; i + 2 * w <= ld; i += 2 * w) {
        auto a0 = hn::LoadU(v, c[0] + i), a1 = hn::LoadU(v, c[1] + i), a2 = hn::LoadU(v, c[2] + i),
             a3 = hn::LoadU(v, c[3] + i);
        auto b0 = hn::LoadU(v, c[0] + i + w), b1 = hn::LoadU(v, c[1] + i + w), b2 = hn::LoadU(v, c[2] + i + w),
             b3 = hn::LoadU(v, c[3] + i + w);
        for (Index k = 0; k < j; ++k) {
          const double* l = L + k * ld;
          const auto r = hn::Set(v, x[k]);  // x holds 1/D until the end
          const auto y = hn::Mul(r, hn::LoadU(v, l + i)), z = hn::Mul(r, hn::LoadU(v, l + i + w));
          const auto s0 = hn::Set(v, l[j]), s1 = hn::Set(v, l[j + 1]), s2 = hn::Set(v, l[j + 2]),
                     s3 = hn::Set(v, l[j + 3]);
          a0 = hn::NegMulAdd(y, s0, a0), b0 = hn::NegMulAdd(z, s0, b0);
          a1 = hn::NegMulAdd(y, s1, a1), b1 = hn::NegMulAdd(z, s1, b1);
          a2 = hn::NegMulAdd(y, s2, a2), b2 = hn::NegMulAdd(z, s2, b2);
          a3 = hn::NegMulAdd(y, s3, a3), b3 = hn::NegMulAdd(z, s3, b3);
        }
        hn::StoreU(a0, v, c[0] + i), hn::StoreU(a1, v, c[1] + i), hn::StoreU(a2, v, c[2] + i),
            hn::StoreU(a3, v, c[3] + i);
        hn::StoreU(b0, v, c[0] + i + w), hn::StoreU(b1, v, c[1] + i + w), hn::StoreU(b2, v, c[2] + i + w),
            hn::StoreU(b3, v, c[3] + i + w);
      }
      for (; i < ld; i += w) {
        auto a0 = hn::LoadU(v, c[0] + i), a1 = hn::LoadU(v, c[1] + i), a2 = hn::LoadU(v, c[2] + i),
             a3 = hn::LoadU(v, c[3] + i);
        for (Index k = 0; k < j; ++k) {
          const double* l = L + k * ld;
          const auto y = hn::Mul(hn::Set(v, x[k]), hn::LoadU(v, l + i));
          a0 = hn::NegMulAdd(y, hn::Set(v, l[j]), a0), a1 = hn::NegMulAdd(y, hn::Set(v, l[j + 1]), a1);
          a2 = hn::NegMulAdd(y, hn::Set(v, l[j + 2]), a2), a3 = hn::NegMulAdd(y, hn::Set(v, l[j + 3]), a3);
        }
        hn::StoreU(a0, v, c[0] + i), hn::StoreU(a1, v, c[1] + i), hn::StoreU(a2, v, c[2] + i),
            hn::StoreU(a3, v, c[3] + i);
      }
    } else if (j) {
      for (Index k = 0; k < j; ++k)
        for (Index q = 0; q < p; ++q) axpy_lanes(-L[k * ld + j + q] * x[k], L + k * ld + j, c[q] + j, ld - j);
    }
    for (Index q = 0; q < p; ++q) {
      const double pivot = c[q][j + q];
      const double r = pivot > tiny ? 1 / pivot : 0;
      x[j + q] = r;
      if (r == 0) {
        for (Index i = j; i < ld; ++i) c[q][i] = 0;
        c[q][j + q] = HUGE_VAL;
      }
      for (Index u = q + 1; u < p && r != 0; ++u) axpy_lanes(-c[q][j + u] * r, c[q] + j, c[u] + j, ld - j);
    }
  }
  for (Index j = 0; j < s; ++j) x[j] = L[j * ld + s];
  solve_upper_lanes(L, ld, s, x);
}
void solve_again_lanes(const double* L, Index ld, Index s, double* x) {
  const Index w = lanes();
  for (Index j = 0; j < s; ++j) {
    const double* c = L + j * ld;
    const double y = x[j] / c[j];
    const auto all = hn::Set(v, y);
    Index i = j + 1;
    // Not fused, so that all entries are rounded in the same way as the last few.
    for (; i + w <= s; i += w) hn::StoreU(hn::Sub(hn::LoadU(v, x + i), hn::Mul(all, hn::LoadU(v, c + i))), v, x + i);
    for (; i < s; ++i) x[i] -= c[i] * y;
  }
  solve_upper_lanes(L, ld, s, x);
}
void project_lanes(const double* HWY_RESTRICT A, Index ld, Index n, const double* HWY_RESTRICT x,
                   double* HWY_RESTRICT c) {
  Index j = 0;
  for (; j + 4 <= n; j += 4) {  // four dot products share the loads of x
    const double* p = A + j * ld;
    auto a0 = hn::Zero(v), a1 = a0, a2 = a0, a3 = a0;
    for (Index i = 0; i < ld; i += lanes()) {
      const auto y = hn::LoadU(v, x + i);
      a0 = hn::MulAdd(y, hn::LoadU(v, p + i), a0), a1 = hn::MulAdd(y, hn::LoadU(v, p + ld + i), a1);
      a2 = hn::MulAdd(y, hn::LoadU(v, p + 2 * ld + i), a2), a3 = hn::MulAdd(y, hn::LoadU(v, p + 3 * ld + i), a3);
    }
    c[j] = hn::GetLane(hn::SumOfLanes(v, a0)), c[j + 1] = hn::GetLane(hn::SumOfLanes(v, a1));
    c[j + 2] = hn::GetLane(hn::SumOfLanes(v, a2)), c[j + 3] = hn::GetLane(hn::SumOfLanes(v, a3));
  }
  for (; j < n; ++j) c[j] = dot_lanes(A + j * ld, x, ld);
}
void subtract_lanes(const double* HWY_RESTRICT A, Index ld, Index n, const double* HWY_RESTRICT c,
                    double* HWY_RESTRICT x) {
  Index j = 0;
  for (; j + 4 <= n; j += 4) {
    const double* p = A + j * ld;
    const auto s0 = hn::Set(v, c[j]), s1 = hn::Set(v, c[j + 1]), s2 = hn::Set(v, c[j + 2]), s3 = hn::Set(v, c[j + 3]);
    for (Index i = 0; i < ld; i += lanes()) {
      auto y = hn::NegMulAdd(s0, hn::LoadU(v, p + i), hn::LoadU(v, x + i));
      y = hn::NegMulAdd(s1, hn::LoadU(v, p + ld + i), y), y = hn::NegMulAdd(s2, hn::LoadU(v, p + 2 * ld + i), y);
      hn::StoreU(hn::NegMulAdd(s3, hn::LoadU(v, p + 3 * ld + i), y), v, x + i);
    }
  }
  for (; j < n; ++j) axpy_lanes(-c[j], A + j * ld, x, ld);
}
void rotate_lanes(double* HWY_RESTRICT x, double* HWY_RESTRICT y, Index n, double c, double s) {
  const auto cv = hn::Set(v, c), sv = hn::Set(v, s);
  for (Index i = 0; i < n; i += lanes()) {
    const auto a = hn::LoadU(v, x + i), b = hn::LoadU(v, y + i);
    hn::StoreU(hn::MulAdd(cv, a, hn::Mul(sv, b)), v, x + i);
    hn::StoreU(hn::NegMulAdd(sv, a, hn::Mul(cv, b)), v, y + i);
  }
}
}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {
HWY_EXPORT(epoch_lanes);
HWY_EXPORT(evaluate_lanes);
HWY_EXPORT(weigh_lanes);
HWY_EXPORT(weighted_gram_lanes);
HWY_EXPORT(multiply_lanes);
HWY_EXPORT(add_outers_lanes);
HWY_EXPORT(factor_solve_lanes);
HWY_EXPORT(solve_again_lanes);
HWY_EXPORT(solve_upper_lanes);
HWY_EXPORT(combine_lanes);
HWY_EXPORT(project_lanes);
HWY_EXPORT(subtract_lanes);
HWY_EXPORT(rotate_lanes);
HWY_EXPORT(dot_lanes);
HWY_EXPORT(axpy_lanes);
#define GO HWY_DYNAMIC_DISPATCH
void combine(const double* A, Index ld, Index n, const double* x, double* y) { GO(combine_lanes)(A, ld, n, x, y); }
void evaluate(const RowBlocks& B, const double* W, double* work, double* out) { GO(evaluate_lanes)(B, W, work, out); }
void add_outers(const double* const* l, const double* const* r, Index count, Index rows, Index columns, double* A) {
  GO(add_outers_lanes)(l, r, count, rows, columns, A);
}
void weigh(const RowBlocks& B, const double* x, double* work, double* W) { GO(weigh_lanes)(B, x, work, W); }
void multiply(const double* A, Index lda, Index rows, Index inner, const double* B, Index ldb, Index columns, double* C,
              Index ldc) {
  GO(multiply_lanes)(A, lda, rows, inner, B, ldb, columns, C, ldc);
}
void weighted_gram(const RowBlocks& B, const double* F, const double* C, Index corner, double* work, double* G,
                   Index ld) {
  GO(weighted_gram_lanes)(B, F, C, corner, work, G, ld);
}
Index epoch(const RowBlocks& B, const double* b, const double* f, Index p, double* x, double* work, double* W) {
  return GO(epoch_lanes)(B, b, f, p, x, work, W);
}
void factor_solve(double* G, Index ld, Index n, double tiny, double* x) { GO(factor_solve_lanes)(G, ld, n, tiny, x); }
void solve_upper(const double* L, Index ld, Index n, double* x) { GO(solve_upper_lanes)(L, ld, n, x); }
void solve_again(const double* L, Index ld, Index n, double* x) { GO(solve_again_lanes)(L, ld, n, x); }
void project(const double* A, Index ld, Index n, const double* x, double* c) { GO(project_lanes)(A, ld, n, x, c); }
void subtract(const double* A, Index ld, Index n, const double* c, double* x) { GO(subtract_lanes)(A, ld, n, c, x); }
void rotate(double* x, double* y, Index n, double c, double s) { GO(rotate_lanes)(x, y, n, c, s); }
double dot(const double* x, const double* y, Index n) { return GO(dot_lanes)(x, y, n); }
void axpy(double a, const double* x, double* y, Index n) { GO(axpy_lanes)(a, x, y, n); }
}  // namespace attsvm::internal
#endif
