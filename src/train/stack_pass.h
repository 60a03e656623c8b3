#pragma once

#include <array>
#include <vector>

#include "attsvm/stack.h"
#include "train/gradient.h"

namespace attsvm::internal {

/// What one pass of all sequences through a stack finds.
struct StackGradient {
  double loss = 0, log_loss = 0;   ///< as in LossGradient
  std::vector<ScaledMatrix> W, V;  ///< one per head, in the order of the stack; V if wanted
  std::vector<ScaledMatrix> A, B;  ///< one per layer with an MLP, if V is wanted

  std::array<std::vector<ScaledMatrix>*, 4> lists() { return {&W, &V, &A, &B}; }
  std::array<const std::vector<ScaledMatrix>*, 4> lists() const { return {&W, &V, &A, &B}; }
};

/// The attention of one head in one sequence.
struct HeadTrace {
  RowMatrix log_weights;     ///< (T,T) row q: logits of the tokens that q sees, minus the largest of them
  Eigen::VectorXd sums;      ///< (T) Σ_t e^{log_weights}
  std::vector<Index> peaks;  ///< (T) the token of largest attention, the lowest among ties
  RowMatrix mixed;           ///< (T,d) Σ_t s_qt x_t
};

/// The MLP of one layer in one sequence.
struct MlpTrace {
  RowMatrix inputs;  ///< (T,d) what the attention of the layer leaves
  RowMatrix hidden;  ///< (T,h) A x of every position whose output is computed, before the ReLU
};

/// A sequence on its way through a stack.
struct StackTrace {
  Index readout = 0;               ///< the position that the head reads
  std::vector<RowMatrix> inputs;   ///< (T,d) of every layer, then the output
  std::vector<HeadTrace> heads;    ///< in the order of the stack
  std::vector<MlpTrace> mlps;      ///< per layer, if it has one
  std::vector<Index> first, last;  ///< per layer: the positions whose output is computed are first … last − 1
};

/// The position of every query, among the tokens that it sees, at which its output is read.
std::vector<Index> readouts_of(const AttentionTask& task);

/// Passes what the query sees through the stack.
StackTrace trace_through(const AttentionTask& task, const Stack& stack, Index query, Index readout);

/// Loss and gradients of all W, and if `values` of all V, A and B. The result does not depend on the number of threads.
///
/// Gradients by tokens are kept as rows with an exponent each: passing a saturated softmax multiplies them by factors
/// far below the smallest double, and rows of very different sizes meet again further down. The ReLU has slope 0 at 0.
void stack_gradient(const AttentionTask& task, const Stack& stack, const Head& head, Loss loss, bool values,
                    Threads& threads, StackGradient& out);

}  // namespace attsvm::internal
