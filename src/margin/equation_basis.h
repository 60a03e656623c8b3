#pragma once

#include <vector>

#include "attsvm/margin_problem.h"

namespace attsvm {

/// Takes one query's equations out of its rows. All rows of a query share ζ, so δ may be replaced by what is left of it
/// beyond the span of the equations' δ, and the equations by orthonormal ones: the same problem, in rows that do not
/// nearly depend on each other where equations nearly contradict a margin. In extended precision. Memory is kept.
class EquationBasis {
 public:
  /// Whether the group has equations; if not, nothing else is to be asked.
  bool load(const MarginProblem& problem, const MarginGroup& group);

  /// What row k of the problem, of this group, is now: its δ (of size d; not of unit length for inequalities) and right
  /// side. A row that follows from the equations, for an equation from those before it, has δ = 0.
  void row(Index k, double* delta, double& rhs) const;

  /// Multipliers of rows as row() gives them from those of the problem's rows, and back, in place.
  void dual_in(double* dual) const;
  void dual_out(double* dual) const;

 private:
  using Real = long double;
  using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic>;

  Index first_row_ = 0;
  std::vector<Index> equation_;  // rows, counted in the group
  Matrix basis_;                 // one orthonormal column per equation, zero where it follows from others
  Matrix parts_;                 // one column per row: what it has of each of them
  Matrix rest_;                  // and what is left of it; of an equation: its column of the basis
  std::vector<Real> rhs_;
};

}  // namespace attsvm
