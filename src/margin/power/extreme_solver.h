#pragma once

#include <functional>
#include <optional>

#include "margin/outcome.h"
#include "margin/power/extreme_face.h"
#include "margin/power/extreme_path.h"
#include "margin/power/row_set.h"

namespace attsvm::internal {

/// Solves min ‖W‖ over the rows of a problem in the norms max, l1 and spec: an interior point method until the face of
/// the optimum can be read off, then Newton's method on that face to rounding; if that fails, an interior point method
/// in extended precision. The equations for λ are a dense matrix, which limits the size. Keeps its memory between
/// calls.
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
  template <class Real>
  struct Tools {
    PowerRows<Real> rows;
    ExtremePath<Real> path;
    ExtremeFace<Real> face;
  };

  bool cover(const MarginProblem& problem, const Norm& norm, const MarginSolution& frobenius,
             const std::function<bool(const SolveProgress&)>& stop);
  template <class Real>
  bool descend(Tools<Real>& tools, const MarginProblem& problem, const Norm& norm, const MarginSolution& frobenius,
               bool afresh, const std::function<bool(const SolveProgress&)>& stop);
  template <class Real>
  void widen(Tools<Real>& tools, const MarginProblem& problem, const Norm& norm);
  template <class Real>
  bool finish(Tools<Real>& tools, const Norm& norm, bool vertex);

  RowSet set_;
  Tools<double> tools_;
  Tools<long double> wide_tools_;
  RowMatrix W_;
  Eigen::VectorXd dual_;
  RowMatrix path_W_;  // where the path is
  Eigen::VectorXd path_dual_, path_slack_;
  bool goes_on_ = true;  // the path, when rows are added, rather than starting again
  std::optional<bool> unique_;
  double gap_ = 0, goal_ = 0;
  Index iterations_ = 0;
  std::string_view method_;
};

}  // namespace attsvm::internal
