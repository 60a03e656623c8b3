#include "margin/gram_kernels.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "margin/gram_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attsvm::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using V = hn::CappedTag<double, 4>;  // as in dense_kernels.cpp
constexpr V v;
inline Index lanes() { return static_cast<Index>(hn::Lanes(v)); }

/// ‖x‖ without overflow or underflow of the squares.
double careful_norm(const double* x, Index n) {
  double top = 0, sum = 0;
  for (Index i = 0; i < n; ++i) top = std::max(top, std::abs(x[i]));
  if (top == 0) return 0;
  for (Index i = 0; i < n; ++i) sum += (x[i] / top) * (x[i] / top);
  return top * std::sqrt(sum);
}
void unit_rows_lanes(const double* X, Index d, Index keep, double sign, const Index* drop, Index count,
                     double* HWY_RESTRICT out, double* HWY_RESTRICT norm) {
  const Index w = lanes(), dp = pad4(d), whole = d / w * w;
  const double* kept = X + keep * d;
  for (Index k = 0; k < count; ++k, out += dp) {
    double square = 0;
    if (drop[k] < 0) {
      for (Index j = 0; j < d; ++j) out[j] = sign * kept[j], square += out[j] * out[j];
    } else {
      const double* other = X + drop[k] * d;
      auto sum = hn::Zero(v);
      for (Index j = 0; j < whole; j += w) {
        const auto delta = hn::Sub(hn::LoadU(v, kept + j), hn::LoadU(v, other + j));
        hn::StoreU(delta, v, out + j);
        sum = hn::MulAdd(delta, delta, sum);
      }
      for (Index j = whole; j < d; ++j) out[j] = kept[j] - other[j], square += out[j] * out[j];
      square += hn::GetLane(hn::SumOfLanes(v, sum));
    }
    for (Index j = d; j < dp; ++j) out[j] = 0;
    norm[k] = square > 1e-260 && square < 1e260 ? std::sqrt(square) : careful_norm(out, d);
    if (norm[k] == 0) continue;
    const auto length = hn::Set(v, norm[k]);
    for (Index j = 0; j < whole; j += w) hn::StoreU(hn::Div(hn::LoadU(v, out + j), length), v, out + j);
    for (Index j = whole; j < d; ++j) out[j] /= norm[k];
  }
}
void lay_across_lanes(const double* HWY_RESTRICT rows, Index d, Index count, double* HWY_RESTRICT A, Index ld) {
  const Index dp = pad4(d);
  for (Index k = 0; k < count; k += 4, rows += 4 * dp, A += 4) {
    const Index left = count - k;
    const double *r0 = rows, *r1 = rows + dp, *r2 = rows + 2 * dp, *r3 = rows + 3 * dp;
    double* a = A;
    for (Index f = 0; f < d; ++f, a += ld) {
      a[0] = r0[f];
      a[1] = left > 1 ? r1[f] : 0;
      a[2] = left > 2 ? r2[f] : 0;
      a[3] = left > 3 ? r3[f] : 0;
    }
  }
}
void hadamard_gram_lanes(const double* HWY_RESTRICT D, Index d, Index m, Index ldd, const double* HWY_RESTRICT H,
                         const Index* query, double* HWY_RESTRICT G, Index ld) {
  const Index w = lanes();
  for (Index l = 0; l < m; l += 4) {
    const double* h[4];
    for (Index c = 0; c < 4; ++c) h[c] = H + (query[l + c < m ? l + c : m - 1]) * ldd;
    for (Index k = l; k < ldd; k += 2 * w) {
      const Index e = k + w < ldd ? w : 0;  // second vector, or the first again at the edge
      auto a0 = hn::Zero(v), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      for (Index f = 0; f < d; ++f) {
        const double* r = D + f * ldd;
        const auto x = hn::LoadU(v, r + k), y = hn::LoadU(v, r + k + e);
        const auto s0 = hn::Set(v, r[l]), s1 = hn::Set(v, r[l + 1]), s2 = hn::Set(v, r[l + 2]),
                   s3 = hn::Set(v, r[l + 3]);
        a0 = hn::MulAdd(x, s0, a0), b0 = hn::MulAdd(y, s0, b0);
        a1 = hn::MulAdd(x, s1, a1), b1 = hn::MulAdd(y, s1, b1);
        a2 = hn::MulAdd(x, s2, a2), b2 = hn::MulAdd(y, s2, b2);
        a3 = hn::MulAdd(x, s3, a3), b3 = hn::MulAdd(y, s3, b3);
      }
      double* g = G + l * ld + k;
      const auto put = [&](Index c, auto a, auto b) {
        hn::StoreU(hn::Mul(a, hn::LoadU(v, h[c] + k)), v, g + c * ld);
        hn::StoreU(hn::Mul(b, hn::LoadU(v, h[c] + k + e)), v, g + c * ld + e);
      };
      put(0, a0, b0), put(1, a1, b1), put(2, a2, b2), put(3, a3, b3);
    }
  }
}
void mirror_lanes(double* G, Index ld, Index n) {
  for (Index l = 0; l < n; l += 4) {  // in squares of four by four
    for (Index i = 1; i < 4; ++i)
      for (Index j = 0; j < i; ++j) G[(l + i) * ld + l + j] = G[(l + j) * ld + l + i];
    for (Index k = l + 4; k < n; k += 4) {
      const double* from = G + l * ld + k;
      double* to = G + k * ld + l;
      for (Index i = 0; i < 4; ++i)
        for (Index j = 0; j < 4; ++j) to[i * ld + j] = from[j * ld + i];
    }
  }
}
void pick_lanes(const double* HWY_RESTRICT G, Index ld, const Index* at, Index n, double* HWY_RESTRICT L, Index ldl) {
  for (Index j = 0; j < n; ++j, L += ldl) {
    const double* g = G + at[j] * ld;
    for (Index i = j & ~Index{3}; i < n; ++i) L[i] = g[at[i]];
  }
}
void combine_at_lanes(const double* HWY_RESTRICT G, Index ld, const Index* at, Index n, const double* HWY_RESTRICT x,
                      double* HWY_RESTRICT y) {
  const Index w = lanes();
  Index i = 0;
  for (; i + 4 * w <= ld; i += 4 * w) {
    auto a = hn::Zero(v), b = a, c = a, e = a;
    for (Index j = 0; j < n; ++j) {
      const double* g = G + at[j] * ld + i;
      const auto s = hn::Set(v, x[j]);
      a = hn::MulAdd(s, hn::LoadU(v, g), a), b = hn::MulAdd(s, hn::LoadU(v, g + w), b);
      c = hn::MulAdd(s, hn::LoadU(v, g + 2 * w), c), e = hn::MulAdd(s, hn::LoadU(v, g + 3 * w), e);
    }
    hn::StoreU(a, v, y + i), hn::StoreU(b, v, y + i + w), hn::StoreU(c, v, y + i + 2 * w);
    hn::StoreU(e, v, y + i + 3 * w);
  }
  for (; i < ld; i += w) {
    auto a = hn::Zero(v);
    for (Index j = 0; j < n; ++j) a = hn::MulAdd(hn::Set(v, x[j]), hn::LoadU(v, G + at[j] * ld + i), a);
    hn::StoreU(a, v, y + i);
  }
}
Index sweep_lanes(const double* HWY_RESTRICT G, Index ld, Index n, const double* HWY_RESTRICT low,
                  double* HWY_RESTRICT x, double* HWY_RESTRICT s) {
  Index changed = 0;
  for (Index k = 0; k < n; ++k) {
    const double y = std::max(x[k] + s[k], low[k]), step = x[k] - y;
    if (step == 0) continue;
    const auto c = hn::Set(v, step);
    const double* g = G + k * ld;
    for (Index i = 0; i < ld; i += lanes())
      hn::StoreU(hn::MulAdd(c, hn::LoadU(v, g + i), hn::LoadU(v, s + i)), v, s + i);
    changed += (x[k] != 0) != (y != 0);
    x[k] = y;
  }
  return changed;
}
}  // namespace
}  // namespace attsvm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm {
HWY_EXPORT(unit_rows_lanes);
HWY_EXPORT(lay_across_lanes);
HWY_EXPORT(hadamard_gram_lanes);
HWY_EXPORT(mirror_lanes);
HWY_EXPORT(pick_lanes);
HWY_EXPORT(combine_at_lanes);
HWY_EXPORT(sweep_lanes);
#define GO HWY_DYNAMIC_DISPATCH
void unit_rows(const double* X, Index d, Index keep, double sign, const Index* drop, Index count, double* out,
               double* norm) {
  GO(unit_rows_lanes)(X, d, keep, sign, drop, count, out, norm);
}
void lay_across(const double* rows, Index d, Index count, double* A, Index ld) {
  GO(lay_across_lanes)(rows, d, count, A, ld);
}
void hadamard_gram(const double* D, Index d, Index m, Index ldd, const double* H, const Index* q, double* G, Index ld) {
  GO(hadamard_gram_lanes)(D, d, m, ldd, H, q, G, ld);
}
void mirror(double* G, Index ld, Index n) { GO(mirror_lanes)(G, ld, n); }
void pick(const double* G, Index ld, const Index* at, Index n, double* L, Index ldl) {
  GO(pick_lanes)(G, ld, at, n, L, ldl);
}
void combine_at(const double* G, Index ld, const Index* at, Index n, const double* x, double* y) {
  GO(combine_at_lanes)(G, ld, at, n, x, y);
}
Index sweep(const double* G, Index ld, Index n, const double* low, double* x, double* s) {
  return GO(sweep_lanes)(G, ld, n, low, x, s);
}
}  // namespace attsvm
#endif
