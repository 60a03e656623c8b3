#pragma once

#include "attsvm/margin.h"
#include "base/spectrum.h"
#include "margin/rank_certifier.h"
#include "margin/row_measure.h"

namespace attsvm {

/// Turns a candidate (W, λ) into a certified answer: restores feasibility where it can, recomputes objective, bound,
/// gap, slack and violation from the rows, and sets the status. Memory is kept.
class Certifier {
 public:
  explicit Certifier(Threads& threads) : measure_(threads) {}

  /// solution.norm says the norm; solution.W, or K and Q of a nuclear answer (whose columns must be orthogonal), and
  /// solution.dual hold W and λ (any positive multiple); everything else is filled in. The status is `optimal`, or
  /// `stalled` where that is not proven.
  void certify(const MarginProblem& problem, double tolerance, MarginSolution& solution);
  /// solution.dual holds a certificate of infeasibility in any positive scale. False: it does not prove enough.
  bool certify_conflict(const MarginProblem& problem, MarginSolution& solution);
  /// Whether rounding is all that keeps W from a matrix that meets every row asking for 0: these rows, as far as W does
  /// not meet them with room to spare, are plainly independent. False: that takes a closer look.
  bool is_near_homogeneous(const MarginProblem& problem, double tolerance, const MarginSolution& solution);
  /// Of the last certificate: how many times what the rows that it weighs ask for alone a W must be to meet them.
  double conflict_factor() const { return conflict_factor_; }

 private:
  struct Feasibility {
    double violation = 0;
    bool met = true;
  };

  void find_bound(const MarginProblem& problem, double tolerance, MarginSolution& solution);
  bool restore(const MarginProblem& problem, double tolerance, MarginSolution& solution);
  /// The smallest factor ≥ 1 that makes W meet every row; 1 where scaling cannot.
  double needed_stretch(const MarginProblem& problem) const;
  Feasibility feasibility(const MarginProblem& problem, const RowMatrix& W);
  double size_of(const MarginProblem& problem, const MarginGroup& group, Index k);
  /// The dual norm of A; for nuclear answers a proven upper bound on it.
  double dual_norm(const Norm& norm, double tolerance);
  static double primal_norm(const MarginSolution& solution);
  static void stretch_weights(double factor, MarginSolution& solution);

  RowMeasure measure_;
  Spectrum spectrum_;  // of A, for nuclear answers
  RankCertifier rank_;
  Eigen::VectorXd delta_;             // of one row
  RowMatrix unit_delta_, unit_zeta_;  // of rows that ask for 0
  Eigen::MatrixXd gram_;
  double conflict_factor_ = 0;
};

}  // namespace attsvm
