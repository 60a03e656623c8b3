#pragma once

#include "attsvm/margin.h"

namespace attsvm::test {

/// The exact answer to min ‖W‖_F over the rows of a problem, found in rational arithmetic.
struct ExactAnswer {
  bool feasible = false;
  double norm = 0;         ///< ‖W‖_F of the optimum, rounded once; 0 if infeasible
  double largest_row = 0;  ///< largest ‖δ‖‖ζ‖
  /// How hard the problem is: norm · largest_row; infinite if there is no optimum.
  double condition() const;
};

/// Solves the least-distance problem as nonnegative least squares (Lawson and Hanson) without rounding. For at most a
/// few hundred rows.
ExactAnswer solve_exactly(const MarginProblem& problem);

}  // namespace attsvm::test
