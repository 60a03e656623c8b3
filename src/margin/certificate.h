#pragma once

#include "attsvm/margin.h"

namespace attsvm {

/// Turns a candidate (W, λ) into a certified answer: restores feasibility where it can, recomputes objective, bound,
/// gap, slack and violation from the rows, and sets the status. Memory is kept.
class Certifier {
 public:
  explicit Certifier(Threads& threads) : threads_(threads) {}

  /// solution.W and solution.dual hold W and λ (any positive multiple); everything else is filled in.
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
  double norm_ = 0, size_ = 0;        // of A
  double W_norm_ = 0;                 // of the W measured first
  double reach_ = 0;                  // largest ‖δ_k‖ ‖ζ_k‖ ‖W‖
  Eigen::VectorXd values_, squares_;  // of the rows: δᵀWζ, and ‖δ‖² as the fast pass sees it
  std::vector<Share> shares_;
  Eigen::Matrix<Real, Eigen::Dynamic, 1> wide_u_, wide_g_;
  Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic> wide_A_;
};

}  // namespace attsvm
