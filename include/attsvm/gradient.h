#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm {

enum class Loss : std::uint8_t {
  logistic,     ///< ℓ(u) = log(1 + e^{−u})
  exponential,  ///< ℓ(u) = e^{−u}
  linear,       ///< ℓ(u) = −u
};

std::string_view name_of(Loss loss);

enum class Arithmetic : std::uint8_t {
  exact,  ///< log-domain: directions stay right however far the softmax has saturated
  plain,  ///< ordinary double arithmetic, rounding noise and underflow included, as deep-learning frameworks do it
};

std::string_view name_of(Arithmetic arithmetic);

/// The matrix direction · e^{log_scale}: any size keeps its direction. Zero: direction = 0 and log_scale = −infinity.
struct ScaledMatrix {
  RowMatrix direction;
  double log_scale = 0;

  bool is_zero() const;
  double log_norm() const;  ///< log ‖·‖_F, −infinity for zero
};

/// What one pass over the task finds at a point (W, v).
struct LossGradient {
  double loss = 0;        ///< L = mean ℓ(y_i f_i) over the queries asked for; may round to 0
  double log_loss = 0;    ///< log L without underflow; NaN where L < 0 (linear loss)
  double log_excess = 0;  ///< log(L − L*), L* = mean ℓ(max_t γ_it), without cancellation; if wanted
  ScaledMatrix W;         ///< ∂L/∂W, (d,dz)
  ScaledMatrix v;         ///< ∂L/∂v, one column: the head's v; B and λ are never trained. If wanted
};

/// Which queries a pass takes, and which attention weights it drops.
struct PassChoice {
  std::span<const Index> queries{};  ///< ascending order is not needed; empty: all
  double dropout = 0;                ///< weights s_t are dropped with this chance, the others divided by 1 − dropout
  std::uint64_t seed = 0;            ///< what is dropped depends on seed, instance, step, query and token alone
  std::uint32_t instance = 0;
  Index step = 0;
};

struct PassSettings {
  Loss loss = Loss::logistic;
  Arithmetic arithmetic = Arithmetic::exact;
  bool head_gradient = false;  ///< fill LossGradient::v
  bool excess = false;         ///< fill log_excess; linear heads only
};

/// Forward and backward through softmax attention: logits a_i = X_i W z_i, f_i = h(V_iᵀ softmax(a_i)).
///
/// The gradient is Σ_i g_i z_iᵀ with g_i = Σ_t ∂L/∂a_it x_it, so that nothing of size n·T·d exists beside the tokens.
/// How exact arithmetic works is in docs/algorithms.md. The result does not depend on the number of threads.
class GradientPass {
 public:
  /// InputError where the excess is wanted and the head is not linear. Task and threads must outlive the pass.
  GradientPass(const AttentionTask& task, const PassSettings& settings, Threads& threads);
  ~GradientPass();
  GradientPass(GradientPass&&) noexcept;

  /// Writes to `out`, reusing its memory. W is (d,dz); `head` stands for the task's own. Numbers that overflow come
  /// out as infinity or NaN.
  void evaluate(const RowMatrix& W, const Head& head, const PassChoice& choice, LossGradient& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The softmax of every query.
struct AttentionMap {
  RowMatrix log_weights;        ///< (q,T) log s_it, T the longest; −infinity where a query sees nothing
  std::vector<Index> selected;  ///< argmax_t s_it, the lowest where several tie

  double weight(Index query) const;  ///< of the selected token
};

AttentionMap attention_map(const AttentionTask& task, const RowMatrix& W, Threads& threads);

/// Mean over queries of the weight of the given tokens at W.
double mean_weight(const AttentionTask& task, const RowMatrix& W, std::span<const Index> tokens, Threads& threads);

}  // namespace attsvm
