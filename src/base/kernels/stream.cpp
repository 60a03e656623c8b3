#include "base/kernels/stream.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "base/kernels/stream.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "base/kernels/tails-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attsvm::internal::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Row after row: the hardware prefetches a single stream at memory speed.
template <class T>
void long_dots(const T* X, Index rows, Index d, const T* u, T* out) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  for (Index t = 0; t < rows; ++t) {
    const T* a = X + t * d;
    auto sum0 = hn::Zero(tag), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    Index j = 0;
    for (; j + 4 * lanes <= d; j += 4 * lanes) {
      sum0 = hn::MulAdd(hn::LoadU(tag, a + j), hn::LoadU(tag, u + j), sum0);
      sum1 = hn::MulAdd(hn::LoadU(tag, a + j + lanes), hn::LoadU(tag, u + j + lanes), sum1);
      sum2 = hn::MulAdd(hn::LoadU(tag, a + j + 2 * lanes), hn::LoadU(tag, u + j + 2 * lanes), sum2);
      sum3 = hn::MulAdd(hn::LoadU(tag, a + j + 3 * lanes), hn::LoadU(tag, u + j + 3 * lanes), sum3);
    }
    for (; j + lanes <= d; j += lanes) sum0 = hn::MulAdd(hn::LoadU(tag, a + j), hn::LoadU(tag, u + j), sum0);
    T dot = hn::GetLane(hn::SumOfLanes(tag, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
    for (; j < d; ++j) dot += a[j] * u[j];
    out[t] = dot;
  }
}

/// Four rows at a time, so that their sums do not wait for each other.
template <class T>
void dots(const T* X, Index rows, Index d, const T* u, T* out) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  if (d >= 8 * lanes) return long_dots(X, rows, d, u, out);
  const Index whole = d / lanes * lanes;
  const auto sum_of = [&](auto v) { return hn::GetLane(hn::SumOfLanes(tag, v)); };
  Index t = 0;
  for (; t + 4 <= rows; t += 4) {
    const T *a = X + t * d, *b = a + d, *c = b + d, *e = c + d;
    auto sum0 = hn::Zero(tag), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (Index j = 0; j < whole; j += lanes) {
      const auto v = hn::LoadU(tag, u + j);
      sum0 = hn::MulAdd(hn::LoadU(tag, a + j), v, sum0);
      sum1 = hn::MulAdd(hn::LoadU(tag, b + j), v, sum1);
      sum2 = hn::MulAdd(hn::LoadU(tag, c + j), v, sum2);
      sum3 = hn::MulAdd(hn::LoadU(tag, e + j), v, sum3);
    }
    T dot0 = sum_of(sum0), dot1 = sum_of(sum1), dot2 = sum_of(sum2), dot3 = sum_of(sum3);
    for (Index j = whole; j < d; ++j) {
      dot0 += a[j] * u[j];
      dot1 += b[j] * u[j];
      dot2 += c[j] * u[j];
      dot3 += e[j] * u[j];
    }
    out[t] = dot0;
    out[t + 1] = dot1;
    out[t + 2] = dot2;
    out[t + 3] = dot3;
  }
  for (; t < rows; ++t) {
    const T* a = X + t * d;
    auto sum = hn::Zero(tag);
    for (Index j = 0; j < whole; j += lanes) sum = hn::MulAdd(hn::LoadU(tag, a + j), hn::LoadU(tag, u + j), sum);
    T dot = sum_of(sum);
    for (Index j = whole; j < d; ++j) dot += a[j] * u[j];
    out[t] = dot;
  }
}

template <class T>
void combination(const T* X, Index rows, Index d, const T* c, T* g, const T* ahead) {
  const hn::ScalableTag<T> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const Index whole = d / lanes * lanes;
  Index j = 0;
  for (; j + 4 * lanes <= whole; j += 4 * lanes) {
    auto sum0 = hn::Zero(tag), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    const T* a = X + j;
    for (Index t = 0; t < rows; ++t, a += d) {
      if (ahead != nullptr) {
        __builtin_prefetch(ahead, 0, 2);
        ahead += 64 / sizeof(T);
      }
      const auto v = hn::Set(tag, c[t]);
      sum0 = hn::MulAdd(hn::LoadU(tag, a), v, sum0);
      sum1 = hn::MulAdd(hn::LoadU(tag, a + lanes), v, sum1);
      sum2 = hn::MulAdd(hn::LoadU(tag, a + 2 * lanes), v, sum2);
      sum3 = hn::MulAdd(hn::LoadU(tag, a + 3 * lanes), v, sum3);
    }
    hn::StoreU(sum0, tag, g + j);
    hn::StoreU(sum1, tag, g + j + lanes);
    hn::StoreU(sum2, tag, g + j + 2 * lanes);
    hn::StoreU(sum3, tag, g + j + 3 * lanes);
  }
  for (; j < whole; j += lanes) {
    auto sum = hn::Zero(tag);
    for (Index t = 0; t < rows; ++t) sum = hn::MulAdd(hn::LoadU(tag, X + t * d + j), hn::Set(tag, c[t]), sum);
    hn::StoreU(sum, tag, g + j);
  }
  for (; j < d; ++j) {
    T sum = 0;
    for (Index t = 0; t < rows; ++t) sum += X[t * d + j] * c[t];
    g[j] = sum;
  }
}

void dots_f64(const double* X, Index rows, Index d, const double* u, double* out) { dots(X, rows, d, u, out); }
void dots_f32(const float* X, Index rows, Index d, const float* u, float* out) { dots(X, rows, d, u, out); }
void combination_f64(const double* X, Index rows, Index d, const double* c, double* g, const double* ahead) {
  combination(X, rows, d, c, g, ahead);
}
void combination_f32(const float* X, Index rows, Index d, const float* c, float* g) {
  combination<float>(X, rows, d, c, g, nullptr);
}

void dots_at_f64(const double* X, const Index* at, Index rows, Index d, const double* u, double* out) {
  const hn::ScalableTag<double> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const Index whole = d / lanes * lanes;
  Index t = 0;
  for (; t + 2 <= rows; t += 2) {
    const double *a = X + at[t] * d, *b = X + at[t + 1] * d;
    const double *ahead_a = X + at[std::min(t + 2, rows - 1)] * d, *ahead_b = X + at[std::min(t + 3, rows - 1)] * d;
    auto sum0 = hn::Zero(tag), sum1 = sum0;
    for (Index j = 0; j < whole; j += lanes) {
      hwy::Prefetch(ahead_a + j);
      hwy::Prefetch(ahead_b + j);
      const auto v = hn::LoadU(tag, u + j);
      sum0 = hn::MulAdd(hn::LoadU(tag, a + j), v, sum0);
      sum1 = hn::MulAdd(hn::LoadU(tag, b + j), v, sum1);
    }
    double dot0 = hn::GetLane(hn::SumOfLanes(tag, sum0)), dot1 = hn::GetLane(hn::SumOfLanes(tag, sum1));
    for (Index j = whole; j < d; ++j) {
      dot0 += a[j] * u[j];
      dot1 += b[j] * u[j];
    }
    out[t] = dot0;
    out[t + 1] = dot1;
  }
  if (t < rows) dots(X + at[t] * d, 1, d, u, out + t);
}

void combination_at_f64(const double* X, const Index* at, Index rows, Index d, const double* c, double* g) {
  const hn::ScalableTag<double> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const Index whole = d / lanes * lanes;
  std::fill_n(g, d, 0.0);
  for (Index t = 0; t < rows; ++t) {
    const double *a = X + at[t] * d, *ahead = X + at[std::min(t + 1, rows - 1)] * d;
    const auto v = hn::Set(tag, c[t]);
    for (Index j = 0; j < whole; j += lanes) {
      hwy::Prefetch(ahead + j);
      hn::StoreU(hn::MulAdd(hn::LoadU(tag, a + j), v, hn::LoadU(tag, g + j)), tag, g + j);
    }
    for (Index j = whole; j < d; ++j) g[j] += a[j] * c[t];
  }
}

/// Takes blocks of four rows and two vectors of columns of G, and sums each over all rows in registers.
void gram_upper_f64(const double* A, const double* B, Index rows, Index d, double* G) {
  const hn::CappedTag<double, 8> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  for (Index i = 0; i < d; i += 4) {
    double* g = G + i * d;
    Index j = i / lanes * lanes;
    for (; j + 2 * lanes <= d; j += 2 * lanes) {
      auto sum0 = hn::Zero(tag), sum1 = sum0, sum2 = sum0, sum3 = sum0, sum4 = sum0, sum5 = sum0, sum6 = sum0,
           sum7 = sum0;
      for (Index t = 0; t < rows; ++t) {
        const double *a = A + t * d + i, *b = B + t * d + j;
        const auto left = hn::LoadU(tag, b), right = hn::LoadU(tag, b + lanes);
        const auto a0 = hn::Set(tag, a[0]), a1 = hn::Set(tag, a[1]), a2 = hn::Set(tag, a[2]), a3 = hn::Set(tag, a[3]);
        sum0 = hn::MulAdd(a0, left, sum0);
        sum1 = hn::MulAdd(a0, right, sum1);
        sum2 = hn::MulAdd(a1, left, sum2);
        sum3 = hn::MulAdd(a1, right, sum3);
        sum4 = hn::MulAdd(a2, left, sum4);
        sum5 = hn::MulAdd(a2, right, sum5);
        sum6 = hn::MulAdd(a3, left, sum6);
        sum7 = hn::MulAdd(a3, right, sum7);
      }
      hn::StoreU(sum0, tag, g + j);
      hn::StoreU(sum1, tag, g + j + lanes);
      hn::StoreU(sum2, tag, g + d + j);
      hn::StoreU(sum3, tag, g + d + j + lanes);
      hn::StoreU(sum4, tag, g + 2 * d + j);
      hn::StoreU(sum5, tag, g + 2 * d + j + lanes);
      hn::StoreU(sum6, tag, g + 3 * d + j);
      hn::StoreU(sum7, tag, g + 3 * d + j + lanes);
    }
    for (; j < d; j += lanes) {
      auto sum0 = hn::Zero(tag), sum1 = sum0, sum2 = sum0, sum3 = sum0;
      for (Index t = 0; t < rows; ++t) {
        const double* a = A + t * d + i;
        const auto b = hn::LoadU(tag, B + t * d + j);
        sum0 = hn::MulAdd(hn::Set(tag, a[0]), b, sum0);
        sum1 = hn::MulAdd(hn::Set(tag, a[1]), b, sum1);
        sum2 = hn::MulAdd(hn::Set(tag, a[2]), b, sum2);
        sum3 = hn::MulAdd(hn::Set(tag, a[3]), b, sum3);
      }
      hn::StoreU(sum0, tag, g + j);
      hn::StoreU(sum1, tag, g + d + j);
      hn::StoreU(sum2, tag, g + 2 * d + j);
      hn::StoreU(sum3, tag, g + 3 * d + j);
    }
  }
}

void measure_rows_f64(const RowDifferences& rows, const double* HWY_RESTRICT u, const double* HWY_RESTRICT c,
                      double* HWY_RESTRICT value, double* HWY_RESTRICT square, double* HWY_RESTRICT g) {
  const hn::CappedTag<double, 4> tag;
  const auto lanes = static_cast<Index>(hn::Lanes(tag));
  const Index d = rows.d, whole = d / lanes * lanes;
  const double* kept = rows.X + rows.keep * d;
  for (Index j = 0; j < pad4(d); j += lanes) hn::StoreU(hn::Zero(tag), tag, g + j);
  for (Index k = 0; k < rows.rows; ++k) {
    auto sum = hn::Zero(tag), squares = sum;
    const auto weight = hn::Set(tag, c[k]);
    const auto add = [&](Index j, auto delta) {
      sum = hn::MulAdd(delta, hn::LoadU(tag, u + j), sum);
      squares = hn::MulAdd(delta, delta, squares);
      hn::StoreU(hn::MulAdd(weight, delta, hn::LoadU(tag, g + j)), tag, g + j);
    };
    if (rows.drop[k] < 0) {
      const auto sign = hn::Set(tag, rows.sign);
      for (Index j = 0; j < whole; j += lanes) add(j, hn::Mul(sign, hn::LoadU(tag, kept + j)));
      if (whole < d) add(whole, hn::Mul(sign, load_first(tag, kept + whole, d - whole)));
    } else {
      const double* other = rows.X + rows.drop[k] * d;
      for (Index j = 0; j < whole; j += lanes) add(j, hn::Sub(hn::LoadU(tag, kept + j), hn::LoadU(tag, other + j)));
      if (whole < d) {
        add(whole, hn::Sub(load_first(tag, kept + whole, d - whole), load_first(tag, other + whole, d - whole)));
      }
    }
    value[k] = hn::GetLane(hn::SumOfLanes(tag, sum));
    square[k] = hn::GetLane(hn::SumOfLanes(tag, squares));
  }
}

}  // namespace
}  // namespace attsvm::internal::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attsvm::internal {

HWY_EXPORT(dots_f64);
HWY_EXPORT(dots_f32);
HWY_EXPORT(combination_f64);
HWY_EXPORT(combination_f32);
HWY_EXPORT(dots_at_f64);
HWY_EXPORT(combination_at_f64);
HWY_EXPORT(gram_upper_f64);
HWY_EXPORT(measure_rows_f64);

void row_dots(const double* X, Index rows, Index d, const double* u, double* out) {
  HWY_DYNAMIC_DISPATCH(dots_f64)(X, rows, d, u, out);
}
void row_dots(const float* X, Index rows, Index d, const float* u, float* out) {
  HWY_DYNAMIC_DISPATCH(dots_f32)(X, rows, d, u, out);
}
void row_combination(const double* X, Index rows, Index d, const double* c, double* g, const double* ahead) {
  HWY_DYNAMIC_DISPATCH(combination_f64)(X, rows, d, c, g, ahead);
}
void row_combination(const float* X, Index rows, Index d, const float* c, float* g) {
  HWY_DYNAMIC_DISPATCH(combination_f32)(X, rows, d, c, g);
}
void row_dots_at(const double* X, const Index* at, Index rows, Index d, const double* u, double* out) {
  HWY_DYNAMIC_DISPATCH(dots_at_f64)(X, at, rows, d, u, out);
}
void row_combination_at(const double* X, const Index* at, Index rows, Index d, const double* c, double* g) {
  HWY_DYNAMIC_DISPATCH(combination_at_f64)(X, at, rows, d, c, g);
}
void gram_upper(const double* A, const double* B, Index rows, Index d, double* G) {
  HWY_DYNAMIC_DISPATCH(gram_upper_f64)(A, B, rows, d, G);
}
void measure_rows(const RowDifferences& rows, const double* u, const double* c, double* value, double* square,
                  double* g) {
  HWY_DYNAMIC_DISPATCH(measure_rows_f64)(rows, u, c, value, square, g);
}

}  // namespace attsvm::internal
#endif  // HWY_ONCE
