#pragma once

#include "attsvm/margin.h"
#include "base/spectrum.h"
#include "margin/certify/rank.h"
#include "margin/certify/row_measure.h"

namespace attsvm::internal {

/// Turns a candidate (W, λ) into a certified answer: makes W feasible if scaling can, recomputes objective, bound, gap,
/// slack and violation from the rows, and sets the status. Keeps its memory between calls.
class Certifier {
 public:
  /// `shared` as in RowSums.
  explicit Certifier(Threads& threads, const SharedRows* shared = nullptr) : shared_(shared), measure_(threads) {}

  /// Reads solution.norm, solution.dual (λ, in any positive multiple), and solution.W, or for nuclear answers K and Q,
  /// whose columns must be orthogonal; fills in everything else. Sets the status to `optimal`, or to `stalled` if that
  /// is not proven.
  void certify(const MarginProblem& problem, double tolerance, MarginSolution& solution);
  /// The same for a certificate of infeasibility in solution.dual (any positive multiple). False: it does not prove
  /// enough.
  bool certify_conflict(const MarginProblem& problem, MarginSolution& solution);
  /// Whether a W that meets every row asking for 0 is within rounding of this one, because those of the rows that are
  /// tight are clearly independent. False: not clear, and verify has to decide.
  bool is_near_homogeneous(const MarginProblem& problem, double tolerance, const MarginSolution& solution);
  /// For the last certificate: the least norm of a W that meets the rows, in multiples of ω (see kInfeasibleFactor).
  double conflict_factor() const { return conflict_factor_; }

 private:
  struct Feasibility {
    double violation = 0;
    bool met = true;
  };

  void find_bound(const MarginProblem& problem, const RowSums& sums, double tolerance, MarginSolution& solution);
  void mend(const MarginProblem& problem, const RowSums& sums, double tolerance, MarginSolution& solution);
  bool restore(const MarginProblem& problem, const RowSums& sums, double tolerance, MarginSolution& solution);
  /// The smallest factor ≥ 1 that makes W meet every row; 1 if scaling cannot.
  double needed_stretch(const MarginProblem& problem, const RowSums& sums) const;
  Feasibility feasibility(const MarginProblem& problem, const RowSums& sums, const RowMatrix& W);
  double size_of(const MarginProblem& problem, const MarginGroup& group, Index k);
  /// The dual norm of A; for nuclear answers a proven upper bound on it.
  double dual_norm(const Norm& norm, double tolerance);
  static double primal_norm(const MarginSolution& solution);
  static void stretch_weights(double factor, MarginSolution& solution);

  const SharedRows* shared_;
  RowMeasure measure_;
  Spectrum spectrum_;  // of A, for nuclear answers
  RankCertifier rank_;
  Eigen::VectorXd delta_;             // of one row
  RowMatrix unit_delta_, unit_zeta_;  // of rows that ask for 0
  Eigen::MatrixXd gram_, inverse_;
  double conflict_factor_ = 0;
};

}  // namespace attsvm::internal
