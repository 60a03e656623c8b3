#pragma once

#include "margin/streaming/face_blocks.h"
#include "margin/streaming/working_rows.h"

namespace attsvm::internal {

/// Levenberg–Marquardt steps of semismooth Newton on the dual max bᵀλ − ½‖A(λ)‖², λ ≥ 0 off the equalities, over a
/// working set.
///
/// The face F holds the rows with λ > 0, the violated ones and the equalities. (K_FF + μM) x = b − v is solved by
/// conjugate gradients in single precision, M being the blocks of K that belong to one query, and preconditioned by M.
/// λ + x is projected block by block, and the step length is exact in double, so that rounding costs steps but no
/// accuracy.
class FaceNewton {
 public:
  FaceNewton(const ScaledProblem& problem, WorkingRows& rows);

  /// One step. Needs rows.value at W; leaves rows.lambda and W current, rows.value stale. `accuracy`: factor by which
  /// conjugate gradients reduce the residual. `fine`: accuracy of row values in the projection of blocks.
  void step(double accuracy, double fine, double* W);

  /// Forgets earlier steps and begins with the damping μ.
  void restart(double damping) {
    damping_ = damping;
    changed_ = 1;
    poor_length_ = 0.5;
  }
  /// Accepts shorter steps before the damping rises, which is better if rows are nearly dependent.
  void be_bold() { poor_length_ = 0.25; }
  double changed() const { return changed_; }           ///< share of the face that the last step made zero or nonzero
  Index applications() const { return applications_; }  ///< products with K in all steps

 private:
  void prepare();
  void solve_face(double accuracy);
  double precondition(double length);
  double apply(double share);
  void gather(double share);
  void gather_part(Index part, Index parts, double share);
  double spread_block(Index first, Index last);
  double project_blocks(double fine, double& longest);
  void project_block(Index i, double fine);
  void advance(double length);

  const ScaledProblem& problem_;
  WorkingRows& rows_;
  double damping_ = 0, changed_ = 1, poor_length_ = 0.5;
  Index applications_ = 0;
  Buffer<std::uint8_t> face_;
  Storage<double> inverse_;  // inverses of the blocks on the face
  // Conjugate gradients: x, Kx and μMx, the residual, M⁻¹ residual, the direction p, μMp, Kp
  Buffer<double> solution_, solution_value_, solution_damping_;
  Buffer<double> residual_, preconditioned_, direction_, direction_damping_, direction_value_;
  Storage<float> direction_W_, part_W_;
  Buffer<double> move_;
  Storage<double> move_W_;
};

}  // namespace attsvm::internal
