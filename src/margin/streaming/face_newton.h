#pragma once

#include "margin/streaming/face_system.h"

namespace attsvm::internal {

/// Semismooth Newton steps on the dual max bᵀλ − ½‖A(λ)‖², λ ≥ 0 off the equalities, over a working set. The face holds
/// the rows with λ > 0, the violated ones and the equalities. λ + x is projected block by block, and the step length is
/// exact in double, so that rounding costs steps but no accuracy.
class FaceNewton {
 public:
  FaceNewton(const ScaledProblem& problem, WorkingRows& rows);

  /// One step. Needs rows.value at W; leaves rows.lambda and W current, rows.value stale. `accuracy`: factor by which
  /// conjugate gradients reduce the residual. `fine`: accuracy of row values in the projection of blocks.
  void step(double accuracy, double fine, double* W);

  /// Forgets earlier steps and begins with the damping μ.
  void restart(double damping) {
    system_.set_damping(damping);
    changed_ = 1;
    poor_length_ = 0.5;
  }
  /// Accepts shorter steps before the damping rises, which is better if rows are nearly dependent.
  void be_bold() { poor_length_ = 0.25; }
  double changed() const { return changed_; }  ///< share of the face that the last step made zero or nonzero
  Index applications() const { return system_.applications(); }  ///< products with K in all steps

 private:
  void choose_face();
  double project_blocks(double fine, double& longest);
  void advance(double length);

  const ScaledProblem& problem_;
  WorkingRows& rows_;
  FaceSystem<WorkingRows> system_;
  double changed_ = 1, poor_length_ = 0.5;
  Buffer<double> move_;
  Storage<double> move_W_;
};

}  // namespace attsvm::internal
