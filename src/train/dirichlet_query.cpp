#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "train/gamma_draw.h"
#include "train/losses.h"
#include "train/query_parts.h"
#include "train/streams.h"

namespace attsvm::internal {
namespace {

/// log w_t of weights w = y/Σy with y_t drawn from the gamma distribution of shape concentration·s_t, and log ∂(log
/// y_t)/∂α_t.
struct DrawnWeights {
  double *log_weight, *log_slope;
  Index peak;  ///< the largest
};

DrawnWeights draw_weights(const QueryInput& in, Index T, double den, QueryScratch& scratch) {
  const Random random(in.choice.seed, in.choice.instance, kDirichlet);
  const std::uint64_t first = in.first_draw;
  const double log_total = std::log(in.choice.concentration) - std::log(den);
  scratch.draws.grow(2 * T);
  DrawnWeights out{scratch.draws.data(), scratch.draws.data() + T, 0};
  for (Index t = 0; t < T; ++t) {
    const double alpha = std::exp(log_total + scratch.logits[t]);
    const GammaDraw y = draw_gamma(alpha, below_one(random.uniform(first + static_cast<std::uint64_t>(t))));
    out.log_weight[t] = y.log_value;
    out.log_slope[t] = y.log_slope;
  }
  out.peak = std::max_element(out.log_weight, out.log_weight + T) - out.log_weight;
  const double top = out.log_weight[out.peak];
  double sum = 0;
  for (Index t = 0; t < T; ++t) sum += std::exp(out.log_weight[t] - top);
  for (Index t = 0; t < T; ++t) out.log_weight[t] -= top + std::log(sum);
  return out;
}

}  // namespace

/// With w_t = y_t/Σy and α_t = c·s_t, ∂f/∂a_t = c s_t (q_t − Σ s q), where q_t = ∂f/∂α_t = (γ_t − Σ w γ) w_t ∂(log
/// y_t)/∂α_t: a pull whose scores are q.
QueryGradient dirichlet_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature) {
  const Query query(in);
  double den = 0;
  const Index p = attend(in, query, scratch, den), T = query.T;
  const DrawnWeights drawn = draw_weights(in, T, den, scratch);
  const bool linear = in.head.kind == HeadKind::linear;
  if (!linear || feature != nullptr) {
    scratch.kept.grow(T);
    for (Index t = 0; t < T; ++t) scratch.kept[t] = std::exp(drawn.log_weight[t]);
    mix_values(query, scratch.kept.data(), 1, nullptr, scratch.output);
  }
  if (!linear) scratch.slope = in.head.gradient(scratch.output);

  // Σ w γ − γ_peak = e^top·lead
  scratch.gaps.grow(T);
  double* gap = scratch.gaps.data();
  double top = kLogZero, lead = 0;
  for (Index t = 0; t < T; ++t) {
    gap[t] = linear ? in.scores.gap(query.first + t, query.first + drawn.peak)
                    : scratch.slope.dot(query.v(t) - query.v(drawn.peak));
    if (gap[t] != 0) top = std::max(top, drawn.log_weight[t]);
  }
  for (Index t = 0; t < T && top != kLogZero; ++t) {
    if (gap[t] != 0) lead += std::exp(drawn.log_weight[t] - top) * gap[t];
  }
  const double drift = top == kLogZero ? 0 : std::exp(top) * lead;

  // q_t = mantissa · e^exponent, all in the scale of the largest
  const auto exponent = [&](Index t) {
    if (top == kLogZero || drawn.log_weight[t] == kLogZero) return kLogZero;
    return drawn.log_weight[t] + drawn.log_slope[t] + (gap[t] != 0 ? 0 : top);
  };
  double scale = kLogZero;
  for (Index t = 0; t < T; ++t) scale = std::max(scale, exponent(t));
  for (Index t = 0; t < T; ++t) {
    const double power = exponent(t) == kLogZero ? 0 : std::exp(exponent(t) - scale);
    gap[t] = power * (gap[t] != 0 ? gap[t] - drift : -lead);
  }
  const double own = gap[p];
  for (Index t = 0; t < T; ++t) gap[t] -= own;
  const Pull pulled = pull(query, scratch, den, p, gap, g);

  const double f = linear ? in.scores.value(query.first + drawn.peak) + drift : in.head.value(scratch.output);
  QueryGradient out;
  const LossTerms terms = loss_terms(in.settings.loss, query.y * f, in.settings.label_smoothing);
  out.sign = terms.sign * query.y;
  out.u = query.y * f;
  out.loss = terms.value;
  out.log_slope = terms.log_slope;
  out.log_weight = pulled.overflow ? 0
                   : pulled.log_scale == kLogZero
                       ? kLogZero
                       : scale + pulled.log_scale + std::log(in.choice.concentration) + out.log_slope;
  if (feature != nullptr) write_feature(in.head, scratch.output, 1, feature);
  return out;
}

/// ∂H/∂a_t = s_t (−log s_t − H): a pull whose scores are −log s_t, so that gaps are −e_t.
void add_entropy(const QueryInput& in, QueryScratch& scratch, QueryGradient& out, double* g) {
  const Query query(in);
  double den = 0;
  const Index p = attend(in, query, scratch, den);
  scratch.gaps.grow(query.T);
  for (Index t = 0; t < query.T; ++t) scratch.gaps[t] = -scratch.logits[t];
  scratch.pulled.resize(query.d);
  const Pull pulled = pull(query, scratch, den, p, scratch.gaps.data(), scratch.pulled.data());
  const double log_weight = pulled.overflow ? 0 : pulled.log_scale + std::log(in.choice.entropy);
  const double scale = std::max(out.log_weight, log_weight);
  if (scale == kLogZero) return;
  Eigen::Map<Eigen::VectorXd> sum(g, query.d);
  sum = std::exp(out.log_weight - scale) * sum + out.sign * std::exp(log_weight - scale) * scratch.pulled;
  out.log_weight = scale;
}

}  // namespace attsvm::internal
