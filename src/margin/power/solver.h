#pragma once

#include "margin/outcome.h"
#include "margin/power/path.h"
#include "margin/power/row_set.h"

namespace attsvm::internal {

/// Solves min ‖W‖ over the rows of a problem in entrywise and Schatten norms of power 1 < P < ∞: in double, and if that
/// does not reach the tolerance, in extended precision. The equations for λ are a dense matrix, which limits the size.
/// Keeps its memory between calls.
class PowerSolver {
 public:
  using Outcome = SolveOutcome;

  /// `frobenius`: the answer of the same problem in that norm, not infeasible. `stop` is called in every
  /// iteration and ends the solve by returning true.
  Outcome solve(const MarginProblem& problem, const Norm& norm, const MarginSolution& frobenius, double tolerance,
                const std::function<bool(const SolveProgress&)>& stop);
  /// The best W and λ (up to a positive factor) so far.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }
  std::string_view method() const { return method_; }

 private:
  template <class Real>
  bool follow(PowerPath<Real>& path, const MarginProblem& problem, const Norm& norm, double centrality,
              const std::function<bool(const SolveProgress&)>& stop);
  template <class Real>
  bool approach(PowerPath<Real>& path, const MarginProblem& problem, const Norm& norm, double centrality,
                const std::function<bool(const SolveProgress&)>& stop);

  RowSet set_;
  PowerPath<double> path_;
  PowerPath<long double> wide_path_;
  RowMatrix W_, near_W_;
  Eigen::VectorXd lambda_, near_lambda_;
  double gap_ = 0;
  Index iterations_ = 0;
  std::string_view method_;
};

}  // namespace attsvm::internal
