#include <algorithm>
#include <cmath>

#include "base/kernels/stream.h"
#include "base/kernels/vector_exp.h"
#include "train/losses.h"
#include "train/query_pass.h"

namespace attsvm::internal {
namespace {

/// Σ term(t) in four partial sums: a single sum would wait for each addition.
template <class Term>
double sum_of(Index count, Term term) {
  double sums[4] = {};
  Index t = 0;
  for (; t + 4 <= count; t += 4) {
    for (Index k = 0; k < 4; ++k) sums[k] += term(t + k);
  }
  for (; t < count; ++t) sums[0] += term(t);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

QueryGradient linear_query(const QueryInput& in, QueryScratch& scratch, double* g) {
  const Index T = in.task.visible(in.query), d = in.task.key_size(), first = in.task.seen_row(in.query);
  const double* X = in.task.seen_keys(in.query).data();
  scratch.logits.grow(T);
  scratch.weights.grow(T);
  scratch.gaps.grow(T);
  double *e = scratch.logits.data(), *w = scratch.weights.data(), *gap = scratch.gaps.data();
  row_dots(X, T, d, in.u, e);
  const Index p = std::max_element(e, e + T) - e;
  const double peak = e[p];
  double top = kLogZero, all = 0;  // top: largest e[t] of the tokens whose score does not tie with the peak's
  bool twin = false;  // another token has the peak's key: it adds nothing, but its rounding would hide the others
  for (Index t = 0; t < T; ++t) {
    e[t] -= peak;
    all += e[t];
    gap[t] = in.scores.gap(first + t, first + p);
    if (gap[t] != 0) top = std::max(top, e[t]);
    twin = twin || (e[t] == 0 && t != p && std::equal(X + t * d, X + (t + 1) * d, X + p * d));
  }
  if (twin || std::isnan(all) || !std::isfinite(peak)) return exact_query(in, scratch, g, nullptr);

  // One exponential per token: tied tokens relative to the peak, the others relative to the largest of them.
  for (Index t = 0; t < T; ++t) w[t] = gap[t] != 0 ? e[t] - top : e[t];
  exp_nonpositive(w, T);
  const double apart = std::exp(top);  // 0 where all tie
  const double den = sum_of(T, [&](Index t) { return gap[t] != 0 ? w[t] * apart : w[t]; });
  const double lead = sum_of(T, [&](Index t) { return w[t] * gap[t]; }) / den;
  const double drift = apart * lead;

  // g = Σ h_t (x_t − x_p) = Σ h_t x_t, with h_p = minus the sum of the others.
  for (Index t = 0; t < T; ++t) w[t] *= (gap[t] != 0 ? gap[t] - drift : -lead) / den;
  w[p] = 0;
  w[p] = -sum_of(T, [&](Index t) { return w[t]; });
  row_combination(X, T, d, w, g, in.next);

  const double u = in.task.label(in.query) * (in.scores.value(first + p) + drift);
  const LossTerms terms = loss_terms(in.settings.loss, u, in.settings.label_smoothing);
  QueryGradient out;
  out.sign = terms.sign * in.task.label(in.query);
  out.u = u;
  out.loss = terms.value;
  out.log_slope = terms.log_slope;
  out.log_weight = top + out.log_slope;
  return out;
}

}  // namespace attsvm::internal
