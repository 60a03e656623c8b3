#pragma once

#include "train/gradient.h"

namespace attsvm::internal {

/// Forward and backward for next-token tasks. Here the output of a query is the log-odds of its label, u =
/// log(p/(1−p)), where p is the attention on all copies of the label; so the logistic loss is −log p.
///
/// All sequences that end in the same token share W z, and their gradients add up before they are multiplied by z. So
/// nothing here grows with the number of sequences but their order.
class LabelPass {
 public:
  /// `task` and `threads` must outlive the pass.
  LabelPass(const AttentionTask& task, const PassSettings& settings, Threads& threads);

  /// As GradientPass::evaluate.
  void evaluate(const RowMatrix& W, const PassChoice& choice, LossGradient& out);

 private:
  // Some sequences that end in the same token, and what they add to loss and gradient. The gradient is in exact
  // arithmetic e^{log_scale}·g zᵀ.
  struct Piece {
    std::size_t first, last;                    // places in the order of sequences
    Index query;                                // row of Z_
    double loss = 0, log_top = 0, log_sum = 0;  // Σ ℓ, and the same as e^{log_top}·log_sum
    double log_scale = 0;
    Eigen::VectorXd g{};
  };

  void cut(std::vector<Piece>& pieces, std::span<const Index> order) const;
  void work(Piece& piece, std::span<const Index> order, double count) const;

  const AttentionTask& task_;
  PassSettings settings_;
  Threads& threads_;
  std::vector<Index> lasts_, order_, chosen_;  // tokens that sequences end in; sequences ordered by them
  RowMatrix Z_, U_, G_;                        // one row per entry of lasts_: z, W z, and the sum of gradients
  std::vector<Piece> all_, some_;
};

}  // namespace attsvm::internal
