#include "train/query_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "train/losses.h"
#include "train/products.h"

namespace attsvm::internal {
namespace {

constexpr double kSmall = -600;  // e^{kSmall}, and all weights that count beside it, are normal doubles

}  // namespace

double lane_sum(const double* items, Index count) {
  std::array<double, 4> lanes{};
  const Index used = std::min<Index>(count, 4);
  std::copy(items, items + used, lanes.begin());
  for (Index t = 4; t < count; ++t) lanes[static_cast<std::size_t>(t % 4)] += items[t];
  double sum = lanes[0];
  for (Index lane = 1; lane < used; ++lane) sum += lanes[static_cast<std::size_t>(lane)];
  return sum;
}

Index attend(const QueryInput& in, const Query& query, QueryScratch& scratch, double& den, const double* noise) {
  scratch.logits.grow(query.T);
  scratch.weights.grow(query.T);
  double *a = scratch.logits.data(), *w = scratch.weights.data();
  dots(query.X, query.T, query.d, in.u, a);
  for (Index t = 0; query.b != nullptr && t < query.T; ++t) a[t] += query.b[t] / in.choice.temperature;
  for (Index t = 0; noise != nullptr && t < query.T; ++t) a[t] += noise[t];
  const Index peak = std::max_element(a, a + query.T) - a;
  const double top = a[peak];
  for (Index t = 0; t < query.T; ++t) {
    a[t] -= top;
    w[t] = std::exp(a[t]);
  }
  den = lane_sum(w, query.T);
  return peak;
}

double below_one(double uniform) { return std::min(uniform, 1 - 0x1p-53); }

Pull pull(const Query& query, QueryScratch& scratch, double den, Index p, const double* gap, double* g, bool apart) {
  const Index T = query.T;
  const double* e = scratch.logits.data();
  apart = apart || query.b != nullptr;

  // γ̄ − γ_p = e^top·lead. The sum leaves out tokens that tie with the peak, because they may outweigh all others.
  double top = kLogZero, lead = 0;
  for (Index t = 0; t < T; ++t) {
    if (gap[t] != 0) top = std::max(top, e[t]);
  }
  scratch.relative.grow(T);
  double* relative = scratch.relative.data();  // e^{e_t − top}
  const double lift = std::exp(-std::max(top, kSmall));
  for (Index t = 0; t < T; ++t) {
    if (gap[t] == 0) continue;
    relative[t] = top > kSmall ? scratch.weights[t] * lift : std::exp(e[t] - top);
    lead += relative[t] * gap[t] / den;
  }
  const double drift = top == kLogZero ? 0 : std::exp(top) * lead;

  // g = Σ_{t≠p} s_t (γ_t − γ̄)(x_t − x_p), each factor of x_t − x_p as mantissa · e^exponent.
  const auto exponent = [&](Index t) {
    const bool silent =
        t == p || top == kLogZero || ((apart || e[t] == 0) && std::equal(query.x(t), query.x(t) + query.d, query.x(p)));
    return silent ? kLogZero : gap[t] != 0 ? e[t] : e[t] + top;
  };
  double scale = kLogZero;
  for (Index t = 0; t < T; ++t) scale = std::max(scale, exponent(t));
  const bool overflow = !std::isfinite(den);
  std::fill(g, g + query.d, overflow ? std::numeric_limits<double>::quiet_NaN() : 0.0);
  for (Index t = 0; t < T && scale != kLogZero; ++t) {
    if (t == p) continue;
    const double power = scale != top ? std::exp(exponent(t) - scale) : gap[t] != 0 ? relative[t] : scratch.weights[t];
    const double factor = power * (gap[t] != 0 ? gap[t] - drift : -lead) / den;
    if (factor == 0) continue;
    const double *x = query.x(t), *x_p = query.x(p);
    for (Index j = 0; j < query.d; ++j) g[j] += factor * (x[j] - x_p[j]);
  }
  return {scale, drift, overflow};
}

void mix_values(const Query& query, const double* weights, double den, const double* kept, Eigen::VectorXd& output) {
  output.setZero(query.dv);
  for (Index t = 0; t < query.T; ++t) {
    const double weight = weights[t] * (kept != nullptr ? kept[t] : 1) / den;
    if (weight != 0) output += weight * query.v(t);
  }
}

void write_feature(const Head& head, const Eigen::VectorXd& output, double factor, double* feature) {
  Eigen::Map<Eigen::VectorXd> out(feature, head.v.size());
  if (head.kind == HeadKind::hidden) {
    out = factor * (head.B.transpose() * output).cwiseMax(0.0);
  } else {
    out = factor * output;
  }
}

}  // namespace attsvm::internal
