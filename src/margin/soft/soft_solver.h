#pragma once

#include <functional>
#include <vector>

#include "margin/certify/row_measure.h"
#include "margin/pursuit.h"
#include "margin/soft/soft_path.h"

namespace attsvm::internal {

/// Minimises ½‖W‖² + Σ C_i ξ_i over rows of query i that are at least b − ξ_i, ξ_i ≥ 0. One slack per query; equations
/// and rows ≥ 0 have none. There is always a solution.
///
/// Problems of many rows are solved on some of them; those that W misses by more than the slack of their query join,
/// until none is left.
class SoftSolver {
 public:
  /// Solves the problem without slacks, to the given answer.
  using Hard = std::function<void(MarginSolution& answer)>;

  /// `penalty` has one C > 0 per query.
  SoftSolver(const MarginProblem& problem, std::vector<double> penalty, double tolerance, StopRule& stop,
             Threads& threads);

  /// Where no slack pays, the answer to a problem that is solved to rounding is that of `hard`, to the bit.
  void solve(const Hard& hard, MarginSolution& answer);

 private:
  Eigen::VectorXd exact_slacks(const RowMatrix& W) const;
  void certify(MarginSolution& answer, bool exactly = false);
  MarginSolution certified(const SoftRows& rows, const SoftPoint& point, std::string_view method);
  void keep(const MarginSolution& candidate);
  bool take_hard(const Hard& hard);
  MarginSolution follow(const std::vector<Index>& rows, double tolerance);
  void solve_wide();
  std::vector<Index> first_rows();
  bool add_rows(const MarginSolution& latest, std::vector<Index>& rows) const;
  bool is_done() const { return has_answer_ && best_.status == MarginStatus::optimal; }

  const MarginProblem& problem_;
  const std::vector<double> penalty_;
  const double tolerance_;
  StopRule& stop_;
  RowSums sums_;
  RowMeasure measure_;
  bool has_answer_ = false;
  MarginSolution best_;
  Index iterations_ = 0;
};

}  // namespace attsvm::internal
