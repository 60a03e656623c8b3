#pragma once

// What one thread of a GPU computes for one query of a run, in the phases between barriers. The order of operations is
// that of lane_kernels.cpp, so results have the same bits as on a CPU with fused multiply-add. Plain C++ without
// includes of the project: nvcc compiles it for the card, and the host compiles it for tests.

#include <math.h>
#include <string.h>

#ifdef __CUDACC__
#define ATTSVM_LANE __host__ __device__ __forceinline__
#define ATTSVM_UNROLL _Pragma("unroll")
#else
#define ATTSVM_LANE inline
#define ATTSVM_UNROLL
#endif

namespace attsvm::internal::device {

constexpr double kNone = -1e300;  // as in lane_kernels.cpp

enum LaneLoss : int { kLogistic, kExponential, kLinear };

/// What all runs of a launch share.
struct LaneRule {
  int loss;        ///< a LaneLoss
  int normalized;  ///< ngd; else gd
  double epsilon;  ///< added to the norm of the gradient
  double queries;  ///< n
};

ATTSVM_LANE unsigned long long bits_of(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<unsigned long long>(__double_as_longlong(x));
#else
  unsigned long long bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

ATTSVM_LANE double number_of(unsigned long long bits) {
#ifdef __CUDA_ARCH__
  return __longlong_as_double(static_cast<long long>(bits));
#else
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

ATTSVM_LANE bool nonzero(double x) { return bits_of(x) << 1 != 0; }  // cheaper on a GPU than comparing doubles

/// e^x for x ≤ 0 with the bits of exp_nonpositive (base/kernels/lanes-inl.h).
ATTSVM_LANE double exp_below(double x) {
  const double rounder = 0x1.8p52;
  const double k = fma(x, 0x1.71547652b82fep+0, rounder);
  double r = fma(-(k - rounder), 0x1.62e42fefa3000p-1, x);
  r = fma(-(k - rounder), 0x1.3de6af278ece6p-42, r);
  double q = fma(0x1.af38d53857513p-26, r, 0x1.2891a8c1d838dp-22);
  q = fma(q, r, 0x1.71de0d9c145d0p-19);
  q = fma(q, r, 0x1.a019b8ef67c6cp-16);
  q = fma(q, r, 0x1.a01a01a7c8d47p-13);
  q = fma(q, r, 0x1.6c16c17893833p-10);
  q = fma(q, r, 0x1.11111111109adp-7);
  q = fma(q, r, 0x1.5555555553d4fp-5);
  q = fma(q, r, 0x1.5555555555556p-3);
  q = fma(q, r, 0x1.0000000000001p-1);
  q = fma(r * r, q, r);
  const double one = q + 1.0;
  return x >= -708.0 ? number_of(bits_of(one) + (bits_of(k) << 52)) : 0.0;
}

/// What a query hands to the others of its run.
struct QueryFacts {
  double f, low, inverse;
};

/// Passes through the softmax of a query, as Lanes::soften does: replaces its T logits a by h. `gamma` are the scores;
/// the query sees the first `seen` tokens.
template <class Numbers, class Scores>
ATTSVM_LANE QueryFacts soften(Numbers& a, const Scores& gamma, int T, int seen) {
  double peak = a[0], score = gamma[0], low = kNone;
  ATTSVM_UNROLL for (int t = 1; t < T; ++t) {
    const double own = gamma[t];
    if (t >= seen) a[t] = kNone;
    score = a[t] > peak ? own : score;
    peak = a[t] > peak ? a[t] : peak;
  }
  const auto gap_of = [&](int t) {
    const double gap = gamma[t] - score;  // loaded in any case: a load under a condition would be a branch
    return t < seen ? gap : 0.0;
  };
  ATTSVM_UNROLL for (int t = 0; t < T; ++t) {
    a[t] -= peak;
    const double gap = gap_of(t);
    low = nonzero(gap) && a[t] > low ? a[t] : low;
  }
  double all = 0, tied = 0, lead = 0;
  ATTSVM_UNROLL for (int t = 0; t < T; ++t) {
    const double gap = gap_of(t);
    a[t] = exp_below(nonzero(gap) ? a[t] - low : a[t]);
    all += a[t];
    tied = nonzero(gap) ? tied : tied + a[t];
    lead = fma(a[t], gap, lead);
  }
  const double scale = exp_below(low);
  const double inverse = 1.0 / fma(scale, all - tied, tied);
  lead *= inverse;
  const double drift = scale * lead;
  ATTSVM_UNROLL for (int t = 0; t < T; ++t) {
    const double gap = gap_of(t);
    a[t] *= nonzero(gap) ? gap - drift : -lead;
  }
  return {score + drift, low, inverse};
}

/// The exponent of a query's weight: what `top` is the largest of.
ATTSVM_LANE double exponent_of(const LaneRule& rule, const QueryFacts& facts) {
  const double slope = rule.loss == kLogistic      ? (facts.f > 0 ? facts.f : 0.0)
                       : rule.loss == kExponential ? facts.f
                                                   : 0.0;
  return facts.low - slope;
}

/// c of a query, as Lanes::weigh finds it.
ATTSVM_LANE double weight_of(const LaneRule& rule, const QueryFacts& facts, double exponent, double top) {
  const double weight = exp_below(exponent - top);
  return weight * (rule.loss == kLogistic ? facts.inverse / (1.0 + exp_below(-fabs(facts.f))) : facts.inverse);
}

/// The factor for a step along a direction of the given squared norm, as Lanes::factor.
ATTSVM_LANE double step_factor(const LaneRule& rule, double square, double top, double step) {
  if (!(square > 0)) return 0;
  if (!rule.normalized) {
    const double small = exp_below(-fabs(top));
    return step / rule.queries * (top <= 0 ? small : 1.0 / small);
  }
  double norm = sqrt(square);
  if (rule.epsilon > 0) {
    const double small = exp_below(-fabs(top));
    norm += rule.epsilon * rule.queries * (top <= 0 ? 1.0 / small : small);
  }
  return step / norm;
}

}  // namespace attsvm::internal::device
