#pragma once

#include "attsvm/array.h"
#include "base/decompositions.h"

namespace attsvm::internal {

/// Singular values and right singular vectors of a matrix through the Gram matrix of its smaller side, with a proven
/// bound on the largest. Small singular values have an error of √ε times the largest. Keeps its memory between calls.
class Spectrum {
 public:
  /// Proves the bound in extended precision if double would leave a relative error above `slack` and A is small.
  void compute(const RowMatrix& A, double slack);
  const Eigen::VectorXd& values() const { return values_; }  ///< min(rows, cols) of them, largest first
  /// At least ‖A‖: for any V, ‖A‖² ≤ ‖(AV)ᵀ(AV)‖ / (1 − ‖VᵀV − I‖), both by absolute row sums, plus a bound on
  /// rounding. V holds computed singular vectors, so the bound exceeds ‖A‖ by little more than rounding.
  double bound() const { return bound_; }
  /// An upper bound on singular value number `rank` (from 0); 0 if there is none. It bounds ‖Ax‖/‖x‖ on the span of the
  /// computed vectors beyond the first `rank`.
  double bound_beyond(Index rank) const;
  /// How far A/b, b = bound(), is from taking V to U and its transpose from taking U to V: √½‖(AV/b − U, AᵀU/b − V)‖_F.
  /// U and V may have fewer rows than A has rows and columns; the missing rows are zero.
  double misfit(const Eigen::MatrixXd& U, const Eigen::MatrixXd& V) const;

 private:
  void find_vectors();
  template <class Real>
  void prove_in();

  Eigen::MatrixXd side_, gram_, vectors_;  // side_: A or its transpose, with no more columns than rows
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen_;
  Eigen::VectorXd ascending_, values_;  // the eigenvalues of gram_, and the singular values
  double bound_ = 0, scale_ = 1;
  bool transposed_ = false;
  // Results of the proof in units of scale_: (AV)ᵀ(AV), and bounds on the rounding in it, in AV and in VᵀV − I
  Eigen::MatrixXd proven_gram_;
  double gram_error_ = 0, product_error_ = 0, skew_ = 1;
};

}  // namespace attsvm::internal
