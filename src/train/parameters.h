#pragma once

#include "attsvm/train.h"
#include "train/gradient.h"

namespace attsvm::internal {

/// The point of a run: the trained arrays, and K Qᵀ.
struct Parameters {
  std::vector<RowMatrix> arrays{};  ///< W, or K and Q; then v as one column if it is trained
  RowMatrix product{};              ///< K Qᵀ; see form_product()
  Parametrization param = Parametrization::W;
  bool joint = false;

  const RowMatrix& W() const { return param == Parametrization::KQ ? product : arrays[0]; }
  const RowMatrix& K() const { return arrays[0]; }
  const RowMatrix& Q() const { return arrays[1]; }
  const RowMatrix& v() const { return arrays.back(); }
  void form_product();
};

/// The task's head, with the start's v if it is given. InputError if the task has no head and the start no v.
Head starting_head(const AttentionTask& task, const Start& start);

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
  ScaledMatrix K_, Q_;
  std::vector<const ScaledMatrix*> gradients_;
};

}  // namespace attsvm::internal
