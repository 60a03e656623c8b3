#pragma once

#include "attsvm/train.h"

namespace attsvm {

/// The point a run is at: what is trained, and what follows from it.
struct Parameters {
  std::vector<RowMatrix> arrays{};  ///< W, or K and Q; then v as one column where it is trained
  RowMatrix product{};              ///< K Qᵀ
  Parametrization param = Parametrization::W;
  bool joint = false;

  const RowMatrix& W() const { return param == Parametrization::KQ ? product : arrays[0]; }
  const RowMatrix& K() const { return arrays[0]; }
  const RowMatrix& Q() const { return arrays[1]; }
  const RowMatrix& v() const { return arrays.back(); }
  void form_product();
};

/// The head with the start's v in place of the task's. InputError where there is none.
Head starting_head(const AttentionTask& task, const Start& start);

/// The first point. InputError names the array whose shape does not fit.
Parameters starting_point(const AttentionTask& task, const TrainSettings& settings, const Start& start,
                          const Head& head);

/// Gradients of the trained arrays, from ∂L/∂W and ∂L/∂v by the chain rule: K: G Q + 2·ridge·K, Q: Gᵀ K + 2·ridge·Q.
class ChainRule {
 public:
  /// The pointers stay valid until the next call, or until `at` changes.
  const std::vector<const ScaledMatrix*>& apply(const Parameters& point, const LossGradient& at, double ridge,
                                                Arithmetic arithmetic);

 private:
  ScaledMatrix K_, Q_;
  std::vector<const ScaledMatrix*> gradients_;
};

}  // namespace attsvm
