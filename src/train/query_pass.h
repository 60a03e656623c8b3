#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "attsvm/train.h"
#include "base/buffer.h"
#include "train/gradient.h"
#include "train/token_scores.h"

namespace attsvm::internal {

/// The contribution of one query: sign·e^{log_weight}·g zᵀ to ∂L/∂W and sign·e^{log_slope}·feature to ∂L/∂v, before the
/// division by the number of queries. In plain arithmetic log_weight = log_slope = 0, and g and feature contain all
/// factors.
struct QueryGradient {
  double log_weight = 0;  ///< −infinity: the gradient of the query is zero
  double log_slope = 0;
  double sign = 1;
  double u = 0, loss = 0;  ///< y f, and ℓ(u)
  double log_excess = 0;   ///< log(ℓ(u) − ℓ(best)), if wanted
  double best_loss = 0;    ///< ℓ(best), if the excess is wanted
};

/// log of the mean of e^{terms}
template <class Term>
double log_mean(std::span<const QueryGradient> queries, Term term) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const QueryGradient& query : queries) top = std::max(top, term(query));
  if (std::isinf(top)) return top;
  for (const QueryGradient& query : queries) sum += std::exp(term(query) - top);
  return top + std::log(sum / static_cast<double>(queries.size()));
}

/// Whether a mean loss may have lost digits to underflow.
bool may_underflow(const PassSettings& settings, double mean);

/// log of the mean loss, also there.
double log_of_mean_loss(const PassSettings& settings, std::span<const QueryGradient> queries, double mean);

/// Working memory of one thread.
struct QueryScratch {
  Buffer<double> logits, weights, relative, gaps, kept, draws;
  Eigen::VectorXd output, slope, pulled;  // V ᵀ s, ∇h there, and a second Σ s_t (γ_t − γ̄) x_t
};

struct QueryInput {
  const AttentionTask& task;
  const PassSettings& settings;
  const PassChoice& choice;
  const Head& head;
  const TokenScores& scores;  ///< of a linear head
  Index query;
  std::uint64_t first_draw;  ///< number of the query's first attention weight among those of all queries and steps
  double count;              ///< number of queries in the mean
  const double* u;           ///< W z_i, (d)
  const double* next;        ///< keys of the next query, to prefetch, or null
};

/// Forward and backward through one query. Writes Σ_t ∂ℓ/∂a_t x_t to g (d), up to the factors above, and ∂h/∂v to
/// `feature` (size of v) unless that is null.
QueryGradient exact_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature);
/// exact_query for a linear head that is not trained, without dropout and without excess; not for tasks with b. Runs at
/// memory speed: it reads the tokens of a query once from memory and once more from the cache.
QueryGradient linear_query(const QueryInput& in, QueryScratch& scratch, double* g);
/// exact_query for weights drawn from a Dirichlet distribution.
QueryGradient dirichlet_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature);
/// Adds β times the entropy of the softmax, as an exact pass through the query left `out` and g.
void add_entropy(const QueryInput& in, QueryScratch& scratch, QueryGradient& out, double* g);
QueryGradient plain_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature);

}  // namespace attsvm::internal
