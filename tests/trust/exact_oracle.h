#pragma once

#include "attsvm/margin_problem.h"

namespace attsvm::test {

/// What is true of min ‖W‖_F over the rows of a problem, found in rational arithmetic: every double is a fraction.
struct ExactAnswer {
  bool feasible = false;
  double norm = 0;         ///< ‖W‖_F of the optimum, rounded once; 0 if infeasible
  double largest_row = 0;  ///< largest ‖δ‖‖ζ‖
  /// How far the optimum is from what the rows ask for one by one; infinite if there is none.
  double condition() const;
};

/// Least distance as nonnegative least squares (Lawson and Hanson), with no rounding anywhere. Rows may be few hundred.
ExactAnswer solve_exactly(const MarginProblem& problem);

}  // namespace attsvm::test
