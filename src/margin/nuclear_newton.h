#pragma once

#include "margin/face_blocks.h"
#include "margin/singular_split.h"
#include "margin/working_rows.h"

namespace attsvm {

/// Semismooth Newton directions for the dual of a proximal step on the nuclear norm over a working set: maximise
/// bᵀλ − ‖S(C + τA(λ))‖²/2τ, λ ≥ 0 off the equalities, where S takes τ off every singular value and C is the centre.
///
/// W = S(C + τA(λ)) is what the rows see, and the derivative of S is a product entry by entry in the singular bases of
/// B = C + τA(λ). So the face's rows (λ > 0, violated, or equal) and the queries are turned into these bases once a
/// step, and conjugate gradients in single precision run there. Only pairs with one of the two directions in the rank
/// of W matter. Preconditioner: the queries' own blocks with the mean of the derivative, which also damp as in
/// Levenberg and Marquardt's method.
class NuclearNewton {
 public:
  NuclearNewton(const ScaledProblem& problem, const WorkingRows& rows);

  /// Needs rows.value at W = S(B), `split` being that of B. `accuracy`: how far conjugate gradients reduce the
  /// residual. `fine`: row values to which blocks are projected. Returns the slope of the dual along move().
  double find(const SingularSplit& split, double tau, double accuracy, double fine);
  /// The change of the multipliers, one a working row; λ + move() is feasible, and so is every part of it.
  const double* move() const { return move_.data(); }

  /// Tells what the line search found: the length taken, 1 at most, and whether the slope there was still small.
  void took(double length, bool good);
  void restart(double damping) { damping_ = damping; }

  Index applications() const { return applications_; }  ///< of the derivative, all steps together
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
  // The face: where each group's rows begin, their blocks, and their places among the working rows
  Buffer<Index> begin_, gram_begin_, member_;
  Storage<float> left_, right_;                   // singular vectors, as rows
  Storage<float> same_, swapped_;                 // (d,dz): how S′ weighs an entry, and the one across the diagonal
  Storage<float> deltas_, queries_;               // of the face and of all groups, in the singular bases
  Storage<double> gram_, inverse_;                // of every group's block
  Storage<float> part_W_, direction_W_, turned_;  // top rank rows, then the left rank columns of the others
  // Conjugate gradients: x, its value and damping, the residual, M⁻¹ residual, the direction p, its value and damping
  Buffer<double> solution_, solution_value_, solution_damping_;
  Buffer<double> residual_, preconditioned_, direction_, direction_value_, direction_damping_;
  Buffer<double> move_;
};

}  // namespace attsvm
