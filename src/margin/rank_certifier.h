#pragma once

#include "attsvm/margin.h"
#include "base/spectrum.h"

namespace attsvm {

/// Proves the rank of nuclear-norm optima, or says why it cannot; docs/algorithms.md has the argument. Memory is kept.
class RankCertifier {
 public:
  /// `solution` has its status, K, Q, dual, slack, objective and bound; `spectrum` is that of A(dual) in any positive
  /// scale.
  RankCertificate certify(const MarginProblem& problem, const MarginSolution& solution, const Spectrum& spectrum);

 private:
  /// The rows that hold an optimum's block: those with a multiplier that the gap cannot hide, and the equations.
  struct Support {
    Index count = 0;
    double lightest = 0;  // the least multiplier among them, for rows of unit length; infinite where there is none
    double misses = 0;    // root of the summed squares of their slacks
    double total = 0;     // Σ |λ| ‖δ‖ ‖ζ‖ over all rows
  };
  enum class Verdict : std::uint8_t { proven, undetermined, undecided };

  void take_bases(const MarginSolution& solution);
  void collect(const MarginProblem& problem, const MarginSolution& solution, double least);
  double reach();
  void form_equations();
  bool exceeds(double square);
  Verdict judge(const MarginProblem& problem, double needed_alone, double needed_each);

  Support support_;
  Eigen::MatrixXd U_, V_;                     // the directions of W
  Eigen::MatrixXd delta_, zeta_;              // of the support, of unit length, a column each
  Eigen::MatrixXd left_, right_;              // the same in U and V
  Eigen::MatrixXd block_, normal_, shifted_;  // some equations, their normal matrix, and that less a multiple of I
  Eigen::MatrixXd gram_, other_;
};

}  // namespace attsvm
