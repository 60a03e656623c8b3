#pragma once

#include "train/query_pass.h"

namespace attsvm::internal {

// Parts that the passes through one query share.

/// The tokens that a query sees.
struct Query {
  const double *X, *V;
  const double* b;        // what is added to the logits at temperature 1, or null
  Index T, d, dv, first;  // first: number of its first token as TokenScores counts
  double y;

  explicit Query(const QueryInput& in)
      : X(in.task.seen_keys(in.query).data()),
        V(in.task.seen_values(in.query).data()),
        b(in.task.bias(in.query)),
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
double lane_sum(const double* items, Index count);

/// Logits, and weights e^{a_t − a_p} relative to the peak p; returns p. den = Σ weights. `noise` is added to the logits
/// unless it is null.
Index attend(const QueryInput& in, const Query& query, QueryScratch& scratch, double& den,
             const double* noise = nullptr);

/// A uniform number as it is, or the largest double below 1 if it has been rounded to 1.
double below_one(double uniform);

/// Σ_t s_t (γ_t − γ̄) x_t = e^{log_scale}·g, and γ̄ − γ_p.
struct Pull {
  double log_scale;  ///< −infinity: the sum is zero
  double drift;
  bool overflow;  ///< g is NaN
};

/// `gap` is γ_t − γ_p; logits, weights and `den` are as attend() leaves them. Tokens with the key of the peak add
/// nothing; their logits are the peak's own unless b, or noise, set them `apart`.
Pull pull(const Query& query, QueryScratch& scratch, double den, Index p, const double* gap, double* g,
          bool apart = false);

/// V ᵀ s; weights s are divided by `den`, and multiplied by `kept` unless that is null.
void mix_values(const Query& query, const double* weights, double den, const double* kept, Eigen::VectorXd& output);

/// ∂h/∂v at the output
void write_feature(const Head& head, const Eigen::VectorXd& output, double factor, double* feature);

}  // namespace attsvm::internal
