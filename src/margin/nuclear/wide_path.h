#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "margin/rows/wide_rows.h"

namespace attsvm::internal {

/// The central path of the dual of the nuclear-norm problem, max bᵀλ over ‖A(λ)‖ ≤ 1, in wide numbers: a last resort
/// for rows that nearly conflict and for degenerate optima, where rounding keeps the methods in double from reaching
/// the tolerance. Slow, so only for small problems. Its answer is correct to the rounding to double.
class WidePath {
 public:
  /// Whether the problem is small enough to be solved within seconds.
  static bool suits(const MarginProblem& problem);

  /// `objective`: an estimate of ‖W‖_* at the optimum. False: asked to stop, or the path was lost.
  bool solve(const MarginProblem& problem, double objective, const std::function<bool()>& stop);
  /// λ is given up to a positive factor.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;
  Index iterations() const { return iterations_; }

 private:
  /// A λ inside the feasible set, with R = (I − AᵀA)⁻¹, Y = A R, P = I + Y Aᵀ, and the slope of the barrier
  /// log det(I − AᵀA) + Σ log λ.
  struct Point {
    WideVector lambda, P, R, Y, slope;
  };

  void load(const MarginProblem& problem, double objective);
  void start();
  bool follow(const std::function<bool()>& stop);
  bool center(double within, const std::function<bool()>& stop);
  bool enter(WideVector lambda, Point& point) const;
  void factorise();
  WideVector newton_step(const WideVector& right) const;
  WideVector imbalance(const Point& point, const Wide& mu) const;
  Wide decrement(WideVector& step) const;

  WideRows rows_;
  Index rows_of_problem_ = 0, iterations_ = 0;
  double scale_ = 1;  // W in the problem / W here
  WideVector rhs_;    // of scaled rows, for W here
  std::vector<char> equal_;
  Wide mu_;
  Point point_;
  std::vector<WideVector> L_;  // the Cholesky factor of minus the barrier's second derivatives at point_
};

}  // namespace attsvm::internal
