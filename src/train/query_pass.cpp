#include "train/query_pass.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "train/losses.h"
#include "train/products.h"
#include "train/streams.h"

namespace attsvm::internal {
namespace {

constexpr double kSmall = -600;  // e^{kSmall}, and all weights that count beside it, are normal doubles

struct Query {
  const double *X, *V;
  Index T, d, dv, first;  // first: number of its first token as TokenScores counts
  double y;

  explicit Query(const QueryInput& in)
      : X(in.task.seen_keys(in.query).data()),
        V(in.task.seen_values(in.query).data()),
        T(in.task.visible(in.query)),
        d(in.task.key_size()),
        dv(in.task.value_size()),
        first(in.task.seen_row(in.query)),
        y(in.task.label(in.query)) {}

  const double* x(Index t) const { return X + t * d; }
  ConstVector v(Index t) const { return {V + t * dv, dv}; }
};

/// Σ items in the order of PyTorch's softmax on four lanes. Once attention saturates, plain arithmetic yields rounding
/// noise; to follow published runs there, sums must round in the same order.
double lane_sum(const double* items, Index count) {
  std::array<double, 4> lanes{};
  const Index used = std::min<Index>(count, 4);
  std::copy(items, items + used, lanes.begin());
  for (Index t = 4; t < count; ++t) lanes[static_cast<std::size_t>(t % 4)] += items[t];
  double sum = lanes[0];
  for (Index lane = 1; lane < used; ++lane) sum += lanes[static_cast<std::size_t>(lane)];
  return sum;
}

/// Logits, and weights e^{a_t − a_p} relative to the peak p; returns p. den = Σ weights.
Index attend(const QueryInput& in, const Query& query, QueryScratch& scratch, double& den) {
  scratch.logits.grow(query.T);
  scratch.weights.grow(query.T);
  double *a = scratch.logits.data(), *w = scratch.weights.data();
  dots(query.X, query.T, query.d, in.u, a);
  const Index peak = std::max_element(a, a + query.T) - a;
  const double top = a[peak];
  for (Index t = 0; t < query.T; ++t) {
    a[t] -= top;
    w[t] = std::exp(a[t]);
  }
  den = lane_sum(w, query.T);
  return peak;
}

/// Factors of the attention weights: 1/(1−dropout) for kept ones, 0 for dropped ones. Null if there is no dropout.
const double* draw_kept(const QueryInput& in, Index T, QueryScratch& scratch) {
  if (in.choice.dropout == 0) return nullptr;
  const Random random(in.choice.seed, in.choice.instance, kDropout);
  const auto all = static_cast<std::uint64_t>(in.task.visible().total());
  const std::uint64_t first = static_cast<std::uint64_t>(in.choice.step) * all + in.first_weight;
  scratch.kept.grow(T);
  for (Index t = 0; t < T; ++t) {
    const bool dropped = random.uniform(first + static_cast<std::uint64_t>(t)) < in.choice.dropout;
    scratch.kept[t] = dropped ? 0 : 1 / (1 - in.choice.dropout);
  }
  return scratch.kept.data();
}

/// V ᵀ s
void mix_values(const Query& query, const double* weights, double den, const double* kept, Eigen::VectorXd& output) {
  output.setZero(query.dv);
  for (Index t = 0; t < query.T; ++t) {
    const double weight = weights[t] * (kept != nullptr ? kept[t] : 1) / den;
    if (weight != 0) output += weight * query.v(t);
  }
}

/// ∂h/∂v at the output
void write_feature(const Head& head, const Eigen::VectorXd& output, double factor, double* feature) {
  Eigen::Map<Eigen::VectorXd> out(feature, head.v.size());
  if (head.kind == HeadKind::hidden) {
    out = factor * (head.B.transpose() * output).cwiseMax(0.0);
  } else {
    out = factor * output;
  }
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

double log_of_mean_loss(const PassSettings& settings, std::span<const QueryGradient> queries, double mean) {
  constexpr double kOrdinary = 1e-290;  // means below this may have lost digits to underflow
  if (mean > kOrdinary || settings.loss == Loss::linear || settings.label_smoothing > 0) return std::log(mean);
  return log_mean(queries, [&](const QueryGradient& query) { return log_loss_value(settings.loss, query.u); });
}

QueryGradient exact_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature) {
  const Query query(in);
  double den = 0;
  const Index p = attend(in, query, scratch, den), T = query.T;
  const double *e = scratch.logits.data(), *kept = draw_kept(in, T, scratch);
  const bool linear = in.head.kind == HeadKind::linear;
  if (!linear || feature != nullptr) mix_values(query, scratch.weights.data(), den, kept, scratch.output);

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
        t == p || top == kLogZero || (e[t] == 0 && std::equal(query.x(t), query.x(t) + query.d, query.x(p)));
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

  const double f = linear ? peak_score + drift : in.head.value(scratch.output);
  const double u = query.y * f;
  QueryGradient out;
  const LossTerms terms = loss_terms(in.settings.loss, u, in.settings.label_smoothing);
  out.sign = terms.sign * query.y;
  out.u = u;
  out.loss = terms.value;
  out.log_slope = terms.log_slope;
  out.log_weight = overflow ? 0 : scale == kLogZero ? kLogZero : scale + out.log_slope;
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
