#pragma once

#include <vector>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// Eliminates the equations of one query from its rows. All rows of a query share ζ, so each δ may be replaced by its
/// part orthogonal to the δ of the equations, and the equations by orthonormal ones. The problem stays the same, but
/// rows are no longer nearly dependent where equations nearly contradict a margin. Computes in extended precision.
/// Keeps its memory between calls.
class EquationBasis {
 public:
  /// Whether the group has equations. If not, the other functions must not be called.
  bool load(const MarginProblem& problem, const MarginGroup& group);

  /// The new form of row k of the problem: its δ (d numbers; not of unit length for inequalities) and right-hand side.
  /// A row that follows from the equations has δ = 0; so has an equation that follows from those before it.
  void row(Index k, double* delta, double& rhs) const;

  /// Converts multipliers of the problem's rows to those of the rows of row(), and back, in place.
  void dual_in(double* dual) const;
  void dual_out(double* dual) const;

 private:
  using Real = long double;
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;

  Index first_row_ = 0;
  std::vector<Index> equation_;  // row numbers within the group
  Matrix basis_;                 // one orthonormal column per equation, zero where it follows from others
  Matrix parts_;                 // one column per row: its coefficients in the basis
  Matrix rest_;                  // one column per row: its rest; for an equation, its column of the basis
  std::vector<Real> rhs_;
};

}  // namespace attsvm::internal
