#pragma once

#include "margin/streaming/face_system.h"
#include "margin/streaming/singular_split.h"

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
  void restart(double damping) { system_.set_damping(damping); }

  Index applications() const { return system_.applications(); }  ///< products with the derivative in all steps
  double changed() const { return changed_; }  ///< share of the face that find() wants to leave or enter λ > 0

 private:
  /// The rows of the face in the singular bases, as FaceSystem reads them.
  class FaceRows {
   public:
    Index begin(Index i) const { return begin_[i]; }
    Index end(Index i) const { return begin_[i + 1]; }
    Index count(Index i) const { return end(i) - begin(i); }
    Index member(Index f) const { return member_[f]; }
    const float* deltas(Index i) const { return deltas_.data() + begin(i) * d_; }
    const double* gram(Index i) const { return gram_.data() + gram_begin_[i]; }
    Index gram_begin(Index i) const { return gram_begin_[i]; }

   private:
    friend class NuclearNewton;
    Index d_ = 0;
    Buffer<Index> begin_, gram_begin_, member_;
    Storage<float> deltas_;
    Storage<double> gram_;
  };
  /// τS′ between the rows, on the top rank rows and the left rank columns of the others.
  struct Derivative;

  void choose_face();
  void take_slopes(const SingularSplit& split, double tau);
  void turn_block(Index first, Index last);
  void weigh_block(Index first, Index last, const float* weight);
  void differentiate(const float* sum);
  double project_blocks(double fine);

  const ScaledProblem& problem_;
  const WorkingRows& rows_;
  FaceRows face_;
  FaceSystem<FaceRows> system_;
  Index rank_ = 0;
  double changed_ = 1;
  Storage<float> left_, right_;    // singular vectors, as rows
  Storage<float> same_, swapped_;  // (d,dz): factors of S′ for an entry and for its mirror image
  Storage<float> queries_;         // of all groups, in the singular bases
  Storage<float> turned_;          // τS′(A(p)): top rank rows, then the left rank columns of the others
  Buffer<double> move_;
};

}  // namespace attsvm::internal
