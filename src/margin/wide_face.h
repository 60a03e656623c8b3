#pragma once

#include <functional>

#include "attsvm/margin.h"
#include "margin/wide_rows.h"

namespace attsvm {

/// Newton's method on the face of a nuclear-norm optimum in wide numbers: the last resort where rows nearly conflict
/// and cancellation keeps the methods in double from the tolerance. For small problems, from an answer that is close.
class WideFace {
 public:
  /// Whether the work stays within seconds: unknowns are K, Q and the multipliers.
  static bool suits(const MarginProblem& problem, Index rank);

  /// Solves A(λ)Q = K, A(λ)ᵀK = Q and the rows with multipliers as equations, K and Q of the given rank. `near`: the
  /// answer to start from. False: it does not settle on signs and rows that fit.
  bool solve(const MarginProblem& problem, const MarginSolution& near, Index rank, const std::function<bool()>& stop);
  void write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& dual) const;
  Index iterations() const { return iterations_; }

 private:
  void start(const MarginProblem& problem, const MarginSolution& near);
  bool descend(const std::function<bool()>& stop);
  bool change_rows();
  void residual(const WideVector& x, WideVector& F) const;
  void linearise();
  bool step(const WideVector& F, WideVector& dx);
  std::size_t blocking(const WideVector& dx) const;

  Index unknowns() const { return (rows_.d() + rows_.dz()) * rank_ + static_cast<Index>(active_.size()); }
  const Wide* K(const WideVector& x) const { return x.data(); }
  const Wide* Q(const WideVector& x) const { return x.data() + rows_.d() * rank_; }
  const Wide* lambda(const WideVector& x) const { return x.data() + (rows_.d() + rows_.dz()) * rank_; }

  WideRows rows_;
  Index rank_ = 0, rows_of_problem_ = 0, iterations_ = 0;
  double scale_ = 1;  // W in the problem / W here
  WideVector rhs_;    // of scaled rows, for W here
  std::vector<char> equal_;
  std::vector<Index> active_;      // ascending
  WideVector x_;                   // K and Q row by row, then the multipliers of active rows
  std::vector<WideVector> J_, L_;  // the Jacobian, and the Cholesky factor of J Jᵀ
};

}  // namespace attsvm
