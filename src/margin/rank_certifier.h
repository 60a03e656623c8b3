#pragma once

#include "attsvm/margin.h"
#include "base/spectrum.h"

namespace attsvm {

/// Proves the rank of nuclear-norm optima, or says why it cannot. Memory is kept.
class RankCertifier {
 public:
  /// `solution` has its status, K, Q, dual, objective and bound; `spectrum` is that of A(dual) in any positive scale.
  RankCertificate certify(const MarginProblem& problem, const MarginSolution& solution, const Spectrum& spectrum);

 private:
  bool is_unique(const MarginProblem& problem, const MarginSolution& solution);

  Eigen::MatrixXd normal_;
  Eigen::VectorXd delta_, left_, right_, row_, sizes_;
  Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> eigen_;
};

}  // namespace attsvm
