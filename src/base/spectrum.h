#pragma once

#include "attsvm/array.h"
#include "base/decompositions.h"

namespace attsvm {

/// Singular values and right singular vectors of a matrix through the Gram matrix of its smaller side, with a proven
/// bound on the largest. Small singular values carry an error of √ε of the largest. Memory is kept.
class Spectrum {
 public:
  /// The bound is proven in extended precision where double would leave more than `slack` of it, and A is small.
  void compute(const RowMatrix& A, double slack);
  const Eigen::VectorXd& values() const { return values_; }  ///< min(rows, cols) of them, largest first
  /// At least ‖A‖: for any V, ‖A‖² ≤ ‖(AV)ᵀ(AV)‖ / (1 − ‖VᵀV − I‖), both by absolute row sums, with what rounding can
  /// have changed added. V are computed singular vectors, so that it is above ‖A‖ by little more than rounding.
  double bound() const { return bound_; }
  /// At least the singular value of number `rank` (from 0), 0 where there is none: ‖Ax‖/‖x‖ is no larger on what the
  /// computed vectors beyond `rank` span.
  double bound_beyond(Index rank) const;
  /// How far A/b, b = bound(), is from taking V to U and its transpose from taking U to V: √½‖(AV/b − U, AᵀU/b − V)‖_F.
  /// U and V may have fewer rows than A has rows and columns: zeros are missing.
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
  // What the proof found, in units of scale_: (AV)ᵀ(AV), and what rounding may have changed in it, in AV and in VᵀV − I
  Eigen::MatrixXd proven_gram_;
  double gram_error_ = 0, product_error_ = 0, skew_ = 1;
};

}  // namespace attsvm
