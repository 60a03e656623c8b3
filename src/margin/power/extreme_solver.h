#pragma once

#include <functional>
#include <optional>

#include "margin/outcome.h"
#include "margin/power/extreme_face.h"
#include "margin/power/extreme_path.h"

namespace attsvm::internal {

/// Solves min ‖W‖ over the rows of a problem in the norms max, l1 and spec: an interior point method until the face of
/// the optimum can be read off, then Newton's method on that face to rounding. Stores the rows as dense vectors. Keeps
/// its memory between calls.
class ExtremeSolver {
 public:
  using Outcome = SolveOutcome;

  /// `frobenius`: the answer of the same problem in that norm, not infeasible. `stop` is called in every
  /// iteration and ends the solve by returning true.
  Outcome solve(const MarginProblem& problem, const Norm& norm, const MarginSolution& frobenius, double tolerance,
                const std::function<bool(const SolveProgress&)>& stop);
  /// The best W and λ (up to a positive factor) so far.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;
  std::optional<bool> unique() const { return unique_; }  ///< whether there is no other optimum; empty: not settled

  Index iterations() const { return iterations_; }
  std::string_view method() const { return method_; }

 private:
  Outcome descend(const Norm& norm, double tolerance, const std::function<bool(const SolveProgress&)>& stop);
  double gap_of(const Norm& norm, const Eigen::VectorXd& w, const Eigen::VectorXd& lambda);
  void take_path();

  PowerRows<double> rows_;
  ExtremePath path_;
  ExtremeFace face_;
  RowMatrix W_, inside_;
  Eigen::VectorXd dual_;
  std::optional<bool> unique_;
  Index iterations_ = 0;
  std::string_view method_;
};

}  // namespace attsvm::internal
