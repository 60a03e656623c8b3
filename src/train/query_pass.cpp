#include "train/query_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "train/losses.h"
#include "train/query_parts.h"
#include "train/streams.h"

namespace attsvm::internal {
namespace {

/// Factors of the attention weights: 1/(1−dropout) for kept ones, 0 for dropped ones. Null if there is no dropout.
const double* draw_kept(const QueryInput& in, Index T, QueryScratch& scratch) {
  if (in.choice.dropout == 0) return nullptr;
  const Random random(in.choice.seed, in.choice.instance, kDropout);
  const std::uint64_t first = in.first_draw;
  scratch.kept.grow(T);
  for (Index t = 0; t < T; ++t) {
    const bool dropped = random.uniform(first + static_cast<std::uint64_t>(t)) < in.choice.dropout;
    scratch.kept[t] = dropped ? 0 : 1 / (1 - in.choice.dropout);
  }
  return scratch.kept.data();
}

/// Writes Gumbel noise to `kept`: with it added to logits, the largest is at t with probability s_t.
void draw_noise(const QueryInput& in, Index T, QueryScratch& scratch) {
  const Random random(in.choice.seed, in.choice.instance, kGumbel);
  const std::uint64_t first = in.first_draw;
  scratch.kept.grow(T);
  for (Index t = 0; t < T; ++t)
    scratch.kept[t] = -std::log(-std::log(below_one(random.uniform(first + static_cast<std::uint64_t>(t)))));
}

/// log(ℓ(u) − ℓ(best)) of a linear head: best − u = Σ s_t (γ_best − γ_t) has no negative term.
void add_excess(const QueryInput& in, const Query& query, const QueryScratch& scratch, double den, QueryGradient& out) {
  const TokenScores& scores = in.scores;
  Index best = 0;
  for (Index t = 1; t < query.T; ++t) {
    if (query.y * scores.gap(query.first + t, query.first + best) > 0) best = t;
  }
  const auto behind = [&](Index t) { return query.y * scores.gap(query.first + best, query.first + t); };
  double top = kLogZero, sum = 0;
  for (Index t = 0; t < query.T; ++t) {
    if (behind(t) > 0) top = std::max(top, scratch.logits[t]);
  }
  for (Index t = 0; t < query.T; ++t) {
    if (behind(t) > 0) sum += std::exp(scratch.logits[t] - top) * behind(t);
  }
  const double best_score = query.y * scores.value(query.first + best);
  out.best_loss = loss_terms(in.settings.loss, best_score).value;
  out.log_excess =
      top == kLogZero ? kLogZero : log_loss_excess(in.settings.loss, best_score, top + std::log(sum / den));
}

}  // namespace

bool may_underflow(const PassSettings& settings, double mean) {
  constexpr double kOrdinary = 1e-290;
  return !(mean > kOrdinary) && settings.loss != Loss::linear && !(settings.label_smoothing > 0);
}

double log_of_mean_loss(const PassSettings& settings, std::span<const QueryGradient> queries, double mean) {
  if (!may_underflow(settings, mean)) return std::log(mean);
  return log_mean(queries, [&](const QueryGradient& query) { return log_loss_value(settings.loss, query.u); });
}

QueryGradient exact_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature) {
  const Query query(in);
  const bool linear = in.head.kind == HeadKind::linear, one = in.choice.selector == Selector::gumbel;
  if (one) draw_noise(in, query.T, scratch);
  double den = 0;
  const Index p = attend(in, query, scratch, den, one ? scratch.kept.data() : nullptr), T = query.T;
  const double* kept = one ? nullptr : draw_kept(in, T, scratch);
  if (one) {
    scratch.output = query.v(p);
  } else if (!linear || feature != nullptr) {
    mix_values(query, scratch.weights.data(), den, kept, scratch.output);
  }

  // Scores minus the peak's; a dropped token scores 0.
  scratch.gaps.grow(T);
  double* gap = scratch.gaps.data();
  double peak_score = 0;
  if (linear) {
    peak_score = (kept != nullptr ? kept[p] : 1) * in.scores.value(query.first + p);
    for (Index t = 0; t < T; ++t) {
      gap[t] = kept == nullptr || (kept[t] != 0 && kept[p] != 0)
                   ? in.scores.gap(query.first + t, query.first + p) * (kept != nullptr ? kept[t] : 1)
                   : kept[t] * in.scores.value(query.first + t) - peak_score;
    }
  } else {
    scratch.slope = in.head.gradient(scratch.output);
    for (Index t = 0; t < T; ++t) {
      gap[t] = kept == nullptr || (kept[t] != 0 && kept[p] != 0)
                   ? scratch.slope.dot(query.v(t) - query.v(p)) * (kept != nullptr ? kept[t] : 1)
                   : kept[t] * scratch.slope.dot(query.v(t)) - kept[p] * scratch.slope.dot(query.v(p));
    }
  }

  const Pull pulled = pull(query, scratch, den, p, gap, g, one);
  const double f = linear ? peak_score + (one ? 0 : pulled.drift) : in.head.value(scratch.output);
  const double u = query.y * f;
  QueryGradient out;
  const LossTerms terms = loss_terms(in.settings.loss, u, in.settings.label_smoothing);
  out.sign = terms.sign * query.y;
  out.u = u;
  out.loss = terms.value;
  out.log_slope = terms.log_slope;
  out.log_weight = pulled.overflow ? 0 : pulled.log_scale == kLogZero ? kLogZero : pulled.log_scale + out.log_slope;
  if (feature != nullptr) write_feature(in.head, scratch.output, 1, feature);
  if (in.settings.excess) add_excess(in, query, scratch, den, out);
  return out;
}

QueryGradient plain_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature) {
  const Query query(in);
  double den = 0;
  attend(in, query, scratch, den);
  QueryGradient out;
  if (in.settings.excess) add_excess(in, query, scratch, den, out);
  const double* kept = draw_kept(in, query.T, scratch);
  double* s = scratch.weights.data();
  mix_values(query, s, den, kept, scratch.output);
  scratch.slope = in.head.gradient(scratch.output);
  const double u = query.y * in.head.value(scratch.output);
  const LossTerms terms = loss_terms(in.settings.loss, u, in.settings.label_smoothing);
  const double slope = terms.sign * std::exp(terms.log_slope) * query.y / in.count;

  scratch.gaps.grow(query.T);
  double* ds = scratch.gaps.data();
  double* products = scratch.logits.data();  // reuses the memory of the logits
  for (Index t = 0; t < query.T; ++t) {
    s[t] /= den;
    ds[t] = slope * scratch.slope.dot(query.v(t)) * (kept != nullptr ? kept[t] : 1);
    products[t] = s[t] * ds[t];
  }
  const double mean = lane_sum(products, query.T);
  std::fill(g, g + query.d, 0.0);
  for (Index t = 0; t < query.T; ++t) {
    const double da = s[t] * (ds[t] - mean);
    const double* x = query.x(t);
    for (Index j = 0; j < query.d; ++j) g[j] += da * x[j];
  }
  if (feature != nullptr) write_feature(in.head, scratch.output, slope, feature);
  out.u = u;
  out.loss = terms.value;
  return out;
}

}  // namespace attsvm::internal
