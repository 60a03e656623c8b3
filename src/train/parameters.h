#pragma once

#include "attsvm/train.h"
#include "train/gradient.h"

namespace attsvm::internal {

/// The point of a run: the trained arrays, and what is made of them. Many heads have arrays of their own, W_1 … W_H or
/// K_1 … K_H, Q_1 … Q_H, or share one norm and then one array, with one head's rows under the other's.
struct Parameters {
  std::vector<RowMatrix> arrays{};  ///< W, or K and Q; then v as one column if it is trained
  RowMatrix product{};              ///< W of all heads, if `arrays` do not hold it as it is; see form_product()
  Parametrization param = Parametrization::W;
  bool joint = false;
  Index heads = 1;
  bool shared = false;  ///< whether the heads share their arrays

  bool formed() const { return param == Parametrization::KQ || (heads > 1 && !shared); }
  const RowMatrix& W() const { return formed() ? product : arrays[0]; }
  const RowMatrix& K() const { return arrays[0]; }     ///< of one head
  const RowMatrix& Q() const { return arrays[1]; }     ///< of one head
  ConstRows part(std::size_t kind, Index head) const;  ///< of one of many heads: kind 0 is W or K, 1 is Q
  RowMatrix all(std::size_t kind) const;               ///< the parts of all heads, one under the other
  const RowMatrix& v() const { return arrays.back(); }
  void form_product();
};

/// The task's head, with the start's v if it is given; for many heads a linear one with all their v's. InputError if
/// the task has no head and the start no v.
Head starting_head(const AttentionTask& task, const TrainSettings& settings, const Start& start);

/// The starting point. InputError names the array whose shape does not fit.
Parameters starting_point(const AttentionTask& task, const TrainSettings& settings, const Start& start,
                          const Head& head);

/// Gradients of the trained arrays, from ∂L/∂W and ∂L/∂v by the chain rule: K: G Q + 2·ridge·K, Q: Gᵀ K + 2·ridge·Q.
class ChainRule {
 public:
  /// The pointers are valid until the next call, and while `at` does not change.
  const std::vector<const ScaledMatrix*>& apply(const Parameters& point, const LossGradient& at, double ridge,
                                                Arithmetic arithmetic);

 private:
  void apply_to_heads(const Parameters& point, const LossGradient& at, double ridge, Arithmetic arithmetic);

  ScaledMatrix K_, Q_;
  std::vector<ScaledMatrix> Ks_, Qs_;  // of many heads
  std::vector<const ScaledMatrix*> gradients_;
};

}  // namespace attsvm::internal
