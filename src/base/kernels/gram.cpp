#include "base/kernels/gram.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/kernels/gram.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/kernels/tails-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using V = hn::CappedTag<double, 4>;  // as in dense.cpp
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
  for (Index k = 0; k < count; ++k) {
    double* row = out + k * dp;
    auto sum = hn::Zero(v);
    const auto place = [&](Index j, auto delta) {
      hn::StoreU(delta, v, row + j);
      sum = hn::MulAdd(delta, delta, sum);
    };
    if (drop[k] < 0) {
      const auto s = hn::Set(v, sign);
      for (Index j = 0; j < whole; j += w) place(j, hn::Mul(s, hn::LoadU(v, kept + j)));
      if (whole < d) place(whole, hn::Mul(s, load_first(v, kept + whole, d - whole)));
    } else {
      const double* other = X + drop[k] * d;
      for (Index j = 0; j < whole; j += w) place(j, hn::Sub(hn::LoadU(v, kept + j), hn::LoadU(v, other + j)));
      if (whole < d) {
        place(whole, hn::Sub(load_first(v, kept + whole, d - whole), load_first(v, other + whole, d - whole)));
      }
    }
    for (Index j = (d + w - 1) / w * w; j < dp; ++j) row[j] = 0;
    norm[k] = hn::GetLane(hn::SumOfLanes(v, sum));
  }
  for (Index k = 0; k < count; ++k, out += dp) {  // in a separate loop, so that the square roots of many rows overlap
    if (norm[k] > 1e-260 && norm[k] < 1e260) {
      norm[k] = std::sqrt(norm[k]);
      const auto inverse = hn::Set(v, 1 / norm[k]);
      for (Index j = 0; j < dp; j += w) hn::StoreU(hn::Mul(hn::LoadU(v, out + j), inverse), v, out + j);
    } else {
      norm[k] = careful_norm(out, d);
      for (Index j = 0; norm[k] > 0 && j < d; ++j) out[j] /= norm[k];
    }
  }
}
/// to(i,j) = from(j,i) for four by four numbers.
HWY_INLINE void transpose4(const double* HWY_RESTRICT from, Index ld_from, double* HWY_RESTRICT to, Index ld_to) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  const auto a = hn::LoadU(v, from), b = hn::LoadU(v, from + ld_from), c = hn::LoadU(v, from + 2 * ld_from),
             e = hn::LoadU(v, from + 3 * ld_from);
  const auto even = hn::InterleaveLower(v, a, b), odd = hn::InterleaveUpper(v, a, b);
  const auto even2 = hn::InterleaveLower(v, c, e), odd2 = hn::InterleaveUpper(v, c, e);
  hn::StoreU(hn::ConcatLowerLower(v, even2, even), v, to);
  hn::StoreU(hn::ConcatLowerLower(v, odd2, odd), v, to + ld_to);
  hn::StoreU(hn::ConcatUpperUpper(v, even2, even), v, to + 2 * ld_to);
  hn::StoreU(hn::ConcatUpperUpper(v, odd2, odd), v, to + 3 * ld_to);
#else
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j) to[i * ld_to + j] = from[j * ld_from + i];
#endif
}
void lay_across_lanes(const double* HWY_RESTRICT rows, Index d, Index count, double* HWY_RESTRICT A, Index ld) {
  const Index dp = pad4(d), whole = d & ~Index{3};
  for (Index k = 0; k < count; k += 4) {
    const bool full = k + 4 <= count;
    for (Index f = 0; full && f < whole; f += 4) transpose4(rows + k * dp + f, dp, A + f * ld + k, ld);
    for (Index f = full ? whole : 0; f < d; ++f)
      for (Index i = 0; i < 4; ++i) A[f * ld + k + i] = k + i < count ? rows[(k + i) * dp + f] : 0;
  }
}
void query_products_lanes(const double* HWY_RESTRICT zeta, Index zp, const Index* query, const Index* start,
                          Index groups, Index ldd, double* HWY_RESTRICT H) {
  for (Index a = 0; a < groups; ++a, H += ldd) {
    const double* own = zeta + query[start[a]] * zp;
    for (Index k = start[a] & ~Index{3}; k < start[a]; ++k) H[k] = 0;
    for (Index b = a; b < groups; ++b) {
      const double* other = zeta + query[start[b]] * zp;
      auto sum = hn::Zero(v);
      for (Index j = 0; j < zp; j += lanes()) sum = hn::MulAdd(hn::LoadU(v, own + j), hn::LoadU(v, other + j), sum);
      const double product = hn::GetLane(hn::SumOfLanes(v, sum));
      for (Index k = start[b]; k < start[b + 1]; ++k) H[k] = product;
    }
    for (Index k = start[groups]; k < ldd; ++k) H[k] = 0;
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
  for (Index l = 0; l < n; l += 4) {  // in blocks of four by four
    for (Index i = 1; i < 4; ++i)
      for (Index j = 0; j < i; ++j) G[(l + i) * ld + l + j] = G[(l + j) * ld + l + i];
    for (Index k = l + 4; k < n; k += 4) transpose4(G + l * ld + k, ld, G + k * ld + l, ld);
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
  constexpr double kRelaxation = 1.2;
  const Index w = lanes();
  Index changed = 0;
  double aim = n > 0 ? x[0] + kRelaxation * s[0] : 0;
  for (Index k = 0; k < n; ++k) {
    const double y = std::max(aim, low[k]), step = x[k] - y;
    const double* g = G + k * ld;
    // The next target corrects for this step with one entry of G: waiting for s would make the loop twice as slow.
    const Index next = k + 1 < n ? k + 1 : k;
    const double before = x[next] + kRelaxation * s[next], slope = kRelaxation * g[next];
    aim = before + slope * step;
    if (step == 0) continue;
    const auto c = hn::Set(v, step);
    const auto add = [&](Index i) { hn::StoreU(hn::MulAdd(c, hn::LoadU(v, g + i), hn::LoadU(v, s + i)), v, s + i); };
    Index i = 0;
    for (; i + 4 * w <= ld; i += 4 * w) add(i), add(i + w), add(i + 2 * w), add(i + 3 * w);
    for (; i < ld; i += w) add(i);
    changed += (x[k] != 0) != (y != 0);
    x[k] = y;
  }
  return changed;
}
}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {
HWY_EXPORT(unit_rows_lanes);
HWY_EXPORT(lay_across_lanes);
HWY_EXPORT(query_products_lanes);
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
void query_products(const double* zeta, Index zp, const Index* query, const Index* start, Index groups, Index ldd,
                    double* H) {
  GO(query_products_lanes)(zeta, zp, query, start, groups, ldd, H);
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
Index gauss_seidel(const double* G, Index ld, Index n, const double* low, double* x, double* s) {
  return GO(sweep_lanes)(G, ld, n, low, x, s);
}
}  // namespace attsvm::internal
#endif
