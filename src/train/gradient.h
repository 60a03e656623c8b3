#pragma once

#include <memory>
#include <span>
#include <string>

#include "attsvm/train.h"
#include "base/packed.h"

namespace attsvm::internal {

/// The matrix direction · e^{log_scale}, which neither underflows nor overflows. Zero: direction = 0 and log_scale =
/// −infinity.
struct ScaledMatrix {
  RowMatrix direction;
  double log_scale = 0;

  bool is_zero() const;
  void divide(double divisor, Arithmetic arithmetic);  ///< divisor > 0; in plain arithmetic log_scale stays 0
  double log_norm() const;                             ///< log ‖·‖_F, −infinity for zero
};

/// What one pass over the task finds at a point (W, v).
struct LossGradient {
  double loss = 0;                    ///< L = mean ℓ(y_i f_i) over the queries of the pass; may round to 0
  double log_loss = 0;                ///< log L without underflow; NaN where L < 0 (linear loss)
  double log_excess = 0;              ///< log(L − L*), L* = mean ℓ(max_t γ_it), without cancellation; if wanted
  ScaledMatrix W;                     ///< ∂L/∂W, (d,dz); with many heads (H·d,dz)
  ScaledMatrix v;                     ///< ∂L/∂v as one column, if wanted; B and λ are never trained
  std::vector<ScaledMatrix> heads{};  ///< many heads: ∂L/∂W_h, (d,dz), each in a scale of its own
};

/// Which queries a pass takes, and how it takes attention from logits. Plain arithmetic has the soft selector alone.
struct PassChoice {
  std::span<const Index> queries{};  ///< in any order; empty: all
  double dropout = 0;                ///< chance of dropping a weight s_t; the others are divided by 1 − dropout
  Selector selector = Selector::soft;
  double concentration = 0;  ///< of Selector::dirichlet
  double temperature = 1;    ///< W comes divided by it; the pass divides b
  double entropy = 0;        ///< β: the gradient, but not the loss, has β times the mean entropy of the softmax
  std::uint64_t seed = 0;    ///< what is drawn depends on seed, instance, step, query and token alone
  std::uint32_t instance = 0;
  Index step = 0;
};

struct PassSettings {
  Loss loss = Loss::logistic;
  double label_smoothing = 0;  ///< of the logistic loss
  Arithmetic arithmetic = Arithmetic::exact;
  bool head_gradient = false;  ///< fill LossGradient::v
  bool excess = false;         ///< fill log_excess; linear heads only
  Index heads = 1;             ///< of attention; many: see HeadsPass
};

struct SharedTask;

/// Forward and backward through softmax attention: logits a_i = X_i W z_i + b_i, f_i = h(V_iᵀ softmax(a_i)). Next-token
/// tasks have no head; see LabelPass.
///
/// The gradient is Σ_i g_i z_iᵀ with g_i = Σ_t ∂L/∂a_it x_it, so that no array but the tokens has size n·T·d.
/// docs/algorithms.md describes exact arithmetic, which is double arithmetic in the log domain. The result does not
/// depend on the number of threads.
class GradientPass {
 public:
  /// InputError if the excess is wanted and the head is not linear. The task and `threads` must outlive the pass.
  GradientPass(const AttentionTask& task, const PassSettings& settings, Threads& threads);
  /// One that other ranks share the queries of is neither a next-token task nor for many heads.
  GradientPass(const SharedTask& task, const PassSettings& settings, Threads& threads);
  ~GradientPass();
  GradientPass(GradientPass&&) noexcept;

  /// Writes to `out`, reusing its memory. W is (d,dz); `head` is used instead of the task's own. Numbers that overflow
  /// become infinity or NaN.
  void evaluate(const RowMatrix& W, const Head& head, const PassChoice& choice, LossGradient& out);
  /// What a rank other than 0 answers to Job::gradient, the rest of which is `job`.
  std::string answer(Unpacker& job);
  /// The last answer with those of the ranks that follow, their sums added up as far as the tree of sums has them.
  std::string merged(std::string_view own, std::string_view next) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attsvm::internal
