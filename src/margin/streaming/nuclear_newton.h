#pragma once

#include "margin/streaming/face_blocks.h"
#include "margin/streaming/singular_split.h"
#include "margin/streaming/working_rows.h"

namespace attsvm::internal {

/// Semismooth Newton directions for the dual of a proximal step on the nuclear norm over a working set: maximise
/// bᵀλ − ‖S(C + τA(λ))‖²/2τ, λ ≥ 0 off the equalities, where S reduces every singular value by τ (to 0 at least) and C
/// is the centre.
///
/// Rows are evaluated at W = S(C + τA(λ)). In the singular bases of B = C + τA(λ), the derivative of S multiplies entry
/// by entry. So the rows of the face (λ > 0, violated, or equal) and the queries are transformed to these bases once
/// per step, and conjugate gradients run there in single precision. Only pairs of directions of which at least one
/// belongs to W matter. The preconditioner has one block per query, with the mean of the derivative; it is also the
/// damping matrix, as in the method of Levenberg and Marquardt.
class NuclearNewton {
 public:
  NuclearNewton(const ScaledProblem& problem, const WorkingRows& rows);

  /// Needs rows.value at W = S(B), `split` being that of B. `accuracy`: factor by which conjugate gradients reduce the
  /// residual. `fine`: accuracy of row values in the projection of blocks. Returns the slope of the dual along move().
  double find(const SingularSplit& split, double tau, double accuracy, double fine);
  /// The change of the multipliers, one number per working row; λ + t·move() is feasible for 0 ≤ t ≤ 1.
  const double* move() const { return move_.data(); }

  /// Takes the result of the line search: the length taken, at most 1, and whether the slope there was small.
  void took(double length, bool good);
  void restart(double damping) { damping_ = damping; }

  Index applications() const { return applications_; }  ///< products with the derivative in all steps
  double changed() const { return changed_; }  ///< share of the face that find() wants to leave or enter λ > 0

 private:
  Index begin(Index i) const { return begin_[i]; }
  Index end(Index i) const { return begin_[i + 1]; }
  Index count(Index i) const { return end(i) - begin(i); }

  void choose_face();
  void take_slopes(const SingularSplit& split, double tau);
  void turn_block(Index first, Index last);
  void weigh_block(Index first, Index last, const float* weight);
  void solve_face(double accuracy);
  double precondition(double length);
  double apply(double share);
  void gather_part(Index part, Index parts, double share);
  void differentiate();
  double spread_block(Index first, Index last);
  double project_blocks(double fine);
  void project_block(Index i, double fine);

  const ScaledProblem& problem_;
  const WorkingRows& rows_;
  Index rank_ = 0, applications_ = 0;
  double damping_ = 0, changed_ = 1;
  // The face: where the rows and the block of each group begin, and the positions of rows among the working rows
  Buffer<Index> begin_, gram_begin_, member_;
  Storage<float> left_, right_;                   // singular vectors, as rows
  Storage<float> same_, swapped_;                 // (d,dz): factors of S′ for an entry and for its mirror image
  Storage<float> deltas_, queries_;               // rows of the face and queries of all groups, in the singular bases
  Storage<double> gram_, inverse_;                // blocks of all groups
  Storage<float> part_W_, direction_W_, turned_;  // top rank rows, then the left rank columns of the others
  // Conjugate gradients: x, its value and damping, the residual, M⁻¹ residual, the direction p, its value and damping
  Buffer<double> solution_, solution_value_, solution_damping_;
  Buffer<double> residual_, preconditioned_, direction_, direction_value_, direction_damping_;
  Buffer<double> move_;
};

}  // namespace attsvm::internal
