#pragma once

#include "attsvm/gradient.h"
#include "base/buffer.h"
#include "train/token_scores.h"

namespace attsvm {

/// What one query contributes: sign·e^{log_weight}·g zᵀ to ∂L/∂W, sign·e^{log_slope}·feature to ∂L/∂v (before the
/// division by the number of queries). Plain arithmetic has log_weight = log_slope = 0 and all factors in g and
/// feature.
struct QueryGradient {
  double log_weight = 0;  ///< −infinity: the query has no gradient
  double log_slope = 0;
  double sign = 1;
  double u = 0, loss = 0;  ///< y f, and ℓ(u)
  double log_excess = 0;   ///< log(ℓ(u) − ℓ(best)), if wanted
  double best_loss = 0;    ///< ℓ(best), if the excess is wanted
};

/// Memory of one thread.
struct QueryScratch {
  Buffer<double> logits, weights, relative, gaps, kept;
  Eigen::VectorXd output, slope;  // V ᵀ s and ∇h there
};

struct QueryInput {
  const AttentionTask& task;
  const PassSettings& settings;
  const PassChoice& choice;
  const Head& head;
  const TokenScores& scores;  ///< of a linear head
  Index query;
  std::uint64_t first_weight;  ///< number of the query's first attention weight over all queries
  double count;                ///< queries in the mean
  const double* u;             ///< W z_i, (d)
};

/// Forward and backward through one query. g (d) gets Σ_t ∂ℓ/∂a_t x_t up to the factors above; `feature` (size of v,
/// may be null) what v multiplies in h.
QueryGradient exact_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature);
QueryGradient plain_query(const QueryInput& in, QueryScratch& scratch, double* g, double* feature);

}  // namespace attsvm
