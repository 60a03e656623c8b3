#pragma once

#include "attsvm/margin.h"

namespace attsvm {

/// Turns a candidate (W, λ) into a certified answer: restores feasibility where it can, recomputes objective, bound,
/// gap, slack and violation from the rows, and sets the status. Memory is kept.
class Certifier {
 public:
  /// solution.W and solution.dual hold W and λ (any positive multiple); everything else is filled in.
  void certify(const MarginProblem& problem, double tolerance, MarginSolution& solution);
  /// solution.dual holds a certificate of infeasibility in any positive scale. False: it does not prove anything.
  bool certify_conflict(const MarginProblem& problem, MarginSolution& solution);

 private:
  /// One pass over the rows: their values at W, A_ = Σ λ_k δ_k ζ_kᵀ, and size_ = Σ |λ_k| ‖δ_k‖ ‖ζ_k‖.
  void look(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& lambda, Eigen::VectorXd& values);

  Eigen::VectorXd u_, g_, delta_;
  RowMatrix A_;
  double size_ = 0;
};

}  // namespace attsvm
