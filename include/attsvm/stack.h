#pragma once

#include <functional>
#include <vector>

#include "attsvm/train.h"

namespace attsvm {

/// Layers of attention heads with residuals. The tokens X (T,d) of a sequence pass through all of them:
///
///     x_q ← x_q + Σ_h V_hᵀ Σ_t s_qt x_t,   s_q = softmax over t of x_tᵀ W_h x_q,
///     x_q ← x_q + Bᵀ relu(A x_q)           in a stack with an MLP,
///
/// and the task's head reads one token of the last output.
struct Stack {
  Index layers = 0;            ///< L
  Index heads = 0;             ///< H, of every layer
  bool causal = true;          ///< a token sees itself and the tokens before it; else all
  std::vector<RowMatrix> W;    ///< L·H matrices (d,d), layer by layer
  std::vector<RowMatrix> V{};  ///< the same of the values
  std::vector<RowMatrix> A{};  ///< L matrices (h,d), what each of the h units of a layer reads; none without an MLP
  std::vector<RowMatrix> B{};  ///< the same of what it writes

  /// Where the matrices of a head are in W and V.
  std::size_t at(Index layer, Index head) const { return static_cast<std::size_t>(layer * heads + head); }
};

/// The values V_h with which a stack starts.
enum class StackValues : std::uint8_t {
  random,    ///< normals of variance 1/d
  identity,  ///< all of them the identity
};

std::string_view name_of(StackValues values);  ///< the name that files, JSON and messages use

/// How to train a stack. Of `training`, param, joint, heads, shared_norm, width, ridge, dropout, batch,
/// label_smoothing, selector, entropy, temperature and stop_direction must be as they are by default, the arithmetic
/// exact, and the optimizer other than polyak. A random start has the entries of every W uniform in ±1/√d. An MLP
/// starts with normals of variance 1/d in A and 1/h in B.
struct StackSettings {
  Index layers = 2;                          ///< L
  Index heads = 1;                           ///< H
  Index mlp = 0;                             ///< units h of the MLP after the attention of every layer; 0: no MLP
  bool causal = true;                        ///< as in Stack
  StackValues values = StackValues::random;  ///< which V the stack starts with
  bool train_values = false;                 ///< train V too, and the MLP
  /// A step is measured over all matrices together, not matrix by matrix. Not for optimizers that change singular
  /// values, as muon does.
  bool one_norm = false;
  TrainSettings training{};  ///< how to take steps, and which points to record
};

/// The settings that determine a run, in words.
std::string words_of(const StackSettings& settings);

/// A recorded point of a run.
struct StackRecord {
  Index step = 0;                    ///< steps taken before
  double loss = 0;                   ///< L = mean ℓ(y_i f_i)
  double log_loss = 0;               ///< log L without underflow; NaN if L < 0
  std::vector<double> log_gradient;  ///< (L·H) log ‖∂L/∂W‖_F without underflow; −infinity where it is zero
  Stack stack;                       ///< the weights
};

/// A run: its records, and why it ended.
struct StackRun {
  TrainStop stop = TrainStop::finished;  ///< why it ended
  StackRecord last;                      ///< its last point
  std::vector<StackRecord> records;  ///< the points that the settings ask for; V, A and B, if fixed, only in the last
};

/// InputError unless a stack can read the task: linear or other head, keys that are the tokens, and queries that are
/// tokens of their own sequence, or none. The output is read at the query's token, else at the last that it sees.
void require_stackable(const AttentionTask& task);

/// The stack with which a run starts; it depends on the sizes, settings.training.seed and instance alone.
Stack starting_stack(const AttentionTask& task, const StackSettings& settings);

/// Trains a stack. Gradients are exact in the sense of Arithmetic::exact: they pass through one softmax per layer, and
/// keep their direction however far those have saturated. InputError names what cannot be used.
StackRun train_stack(const AttentionTask& task, const StackSettings& settings, Threads& threads);

/// Which positions of a sequence ask in a layer.
enum class Askers : std::uint8_t {
  /// Those on which the output depends once attention has saturated: the token that is read, and, from the last layer
  /// down, the tokens that the heads select for such positions.
  live,
  all,  ///< every position that is computed
};

/// What the heads of each layer read, as one task of self attention per layer: its sequences are those that the queries
/// of `task` see, as they enter the layer, its queries the positions that ask. So W of a head can be judged as that of
/// any other task. InputError as for require_stackable(); also if the stack has no V, or A without B.
std::vector<AttentionTask> layer_tasks(const AttentionTask& task, const Stack& stack, Askers askers, Threads& threads);

}  // namespace attsvm
