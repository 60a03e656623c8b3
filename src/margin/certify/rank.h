#pragma once

#include "attsvm/margin.h"
#include "base/spectrum.h"
#include "margin/rows/row_sums.h"

namespace attsvm::internal {

/// Proves the rank of nuclear-norm optima, or says why it cannot. docs/algorithms.md explains the proof. Keeps its
/// memory between calls.
class RankCertifier {
 public:
  /// `solution` has its status, K, Q, dual, slack, objective and bound; `spectrum` is that of A(dual) in any positive
  /// scale, `sums` are those of the problem.
  RankCertificate certify(const MarginProblem& problem, const RowSums& sums, const MarginSolution& solution,
                          const Spectrum& spectrum);

 private:
  /// The rows that determine the block of an optimum: the equations, and rows whose multiplier is large beside the gap.
  struct Support {
    Index count = 0;
    double lightest = 0;  // the least multiplier among them, for rows of unit length; infinite if there is none
    double misses = 0;    // root of the summed squares of their slacks
    double total = 0;     // Σ |λ| ‖δ‖ ‖ζ‖ over all rows
  };
  enum class Determined : std::uint8_t { proven, undetermined, undecided };

  void take_bases(const MarginSolution& solution);
  void collect(const MarginProblem& problem, const RowSums& sums, const MarginSolution& solution, double least);
  void gather_support(const RowSums& sums);
  double reach();
  void form_equations();
  bool exceeds(double square);
  Determined judge(const MarginProblem& problem, double needed_alone, double needed_each);

  Support support_;
  Eigen::MatrixXd U_, V_;                     // the directions of W
  Eigen::MatrixXd delta_, zeta_;              // of the support rows, at unit length: one column per row
  Eigen::MatrixXd left_, right_;              // the same in U and V
  Eigen::MatrixXd block_, normal_, shifted_;  // some equations, their normal matrix, and that less a multiple of I
  Eigen::MatrixXd gram_, other_;
};

}  // namespace attsvm::internal
