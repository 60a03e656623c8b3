#pragma once

#include "attsvm/train.h"
#include "train/gradient.h"
#include "train/query_pass.h"

namespace attsvm::internal {

// Many heads of attention: f_i = Σ_h v_hᵀ V_iᵀ softmax(X_i W_h z_i). W stands for all W_h, one under the other, and v
// for all v_h, one after another: a linear head on the outputs of all heads.

/// InputError if the optimizer changes singular values, which belong to one head, so that a norm over several has no
/// meaning; `name` is the setting that asks for such a norm.
void require_joint_norm(const TrainSettings& settings, std::string_view name);

/// InputError unless the optimizer has a meaning with this many heads.
void require_usable_heads(const TrainSettings& settings);
/// InputError unless the task can be trained with this many heads.
void require_usable_heads(const TrainSettings& settings, const AttentionTask& task);

/// The v's of all heads, (H·dv): the rows of the task's `head`, then drawn ones of length 1.
Eigen::VectorXd starting_values(const AttentionTask& task, const TrainSettings& settings);

/// All parts, one under the other, in the largest of their scales.
void stack(std::span<const ScaledMatrix> parts, ScaledMatrix& out);

/// Forward and backward for many heads. The gradient of head h has the form that a single head's has, with the scores
/// v_hᵀx and the common factor ℓ′(y_i f_i), so each head passes through its queries as if its loss were linear; the
/// factor, which needs the outputs of all heads, is multiplied in afterwards. Each head has its own scale.
class HeadsPass {
 public:
  /// `task` and `threads` must outlive the pass.
  HeadsPass(const AttentionTask& task, const PassSettings& settings, Threads& threads);

  /// As GradientPass::evaluate; also fills out.heads.
  void evaluate(const RowMatrix& W, const Eigen::VectorXd& v, const PassChoice& choice, LossGradient& out);

 private:
  void take(const Eigen::VectorXd& v);
  void work(const RowMatrix& W, const PassChoice& choice, Index count, Index begin, Index end, QueryScratch& scratch);
  void gather(Index head, Index count, LossGradient& out) const;
  Index query_of(const PassChoice& choice, Index row) const;

  const AttentionTask& task_;
  PassSettings settings_, linear_;  // linear_: as if the loss were linear
  Threads& threads_;
  Index heads_;
  Eigen::VectorXd v_{};              // what head_ and scores_ are for
  std::vector<Head> head_{};         // (H)
  std::vector<TokenScores> scores_;  // (H)
  std::vector<std::uint64_t> first_{};
  RowMatrix Z_{}, U_{}, g_{}, features_{};  // one row per query taken; U, g and features: H blocks of such rows
  std::vector<QueryGradient> parts_{};      // (H·count), in the order of the rows of g
  std::vector<QueryGradient> queries_{};    // (count): all heads together
};

}  // namespace attsvm::internal
