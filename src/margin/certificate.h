#pragma once

#include "attsvm/margin.h"
#include "base/spectrum.h"
#include "margin/rank_certifier.h"

namespace attsvm {

/// Turns a candidate (W, λ) into a certified answer: restores feasibility where it can, recomputes objective, bound,
/// gap, slack and violation from the rows, and sets the status. Memory is kept.
class Certifier {
 public:
  explicit Certifier(Threads& threads) : threads_(threads) {}

  /// solution.norm says the norm; solution.W, or K and Q of a nuclear answer (whose columns must be orthogonal), and
  /// solution.dual hold W and λ (any positive multiple); everything else is filled in.
  void certify(const MarginProblem& problem, double tolerance, MarginSolution& solution);
  /// solution.dual holds a certificate of infeasibility in any positive scale. False: it does not prove anything.
  bool certify_conflict(const MarginProblem& problem, MarginSolution& solution);

 private:
  using Real = long double;

  /// One pass over the rows: values = δ_kᵀ W ζ_k, and of A = Σ dual_k δ_k ζ_kᵀ the norm and Σ |dual_k| ‖δ_k‖ ‖ζ_k‖.
  /// Where the terms of A cancel by four digits or more, the pass is repeated in extended precision, and so are later
  /// ones.
  void measure(const MarginProblem& problem, const MarginSolution& solution);
  void measure_fast(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual);
  void measure_carefully(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual);
  /// The smallest factor ≥ 1 that makes W meet every row; 1 where scaling cannot.
  double needed_stretch(const MarginProblem& problem) const;
  double violation(const MarginProblem& problem) const;
  /// The dual norm of A; for nuclear answers a proven upper bound on it.
  double dual_norm(const Norm& norm, double tolerance);
  static double primal_norm(const MarginSolution& solution);
  static void stretch_weights(double factor, MarginSolution& solution);

  /// What one thread gathers over its share of the groups.
  struct Share {
    Eigen::VectorXd u;
    RowMatrix g, z;  // Σ dual_k δ_k and ζ of the queries that A still lacks, padded with zeros to multiples of 4
    RowMatrix A;     // (d, padded dz)
    double size = 0, reach = 0;
  };
  void gather(const MarginProblem& problem, const RowMatrix& W, const Eigen::VectorXd& dual, std::size_t begin,
              std::size_t end, Share& share);

  Threads& threads_;
  bool careful_ = false;
  double norm_ = 0, size_ = 0;        // of A: its Frobenius norm, and what it would be if no terms cancelled
  double reach_ = 0;                  // largest ‖δ_k‖ ‖ζ_k‖ ‖W‖
  Eigen::VectorXd values_, squares_;  // of the rows: δᵀWζ, and ‖δ‖² as the fast pass sees it
  std::vector<Share> shares_;         // A ends up in the first
  Spectrum spectrum_;                 // of A, for nuclear answers
  RankCertifier rank_;
  Eigen::Matrix<Real, Eigen::Dynamic, 1> wide_u_, wide_g_;
  Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic> wide_A_;
};

}  // namespace attsvm
