#pragma once

#include "attsvm/margin.h"
#include "base/buffer.h"

namespace attsvm::internal {

/// The rows that a solver with one dense equation per row takes at once: all, or the tightest of too many, to which
/// those are added that an answer violates. Keeps its memory between calls.
class RowSet {
 public:
  /// `slack`: of all rows at an answer in another norm, which has multipliers `dual`. False: even the rows that must be
  /// taken, equations and those with a multiplier, are too many.
  bool choose(const MarginProblem& problem, const Eigen::VectorXd& slack, const Eigen::VectorXd& dual);
  /// Adds rows that W, which may be any multiple of an answer, violates. False: there are none, or no room for them.
  bool add_violated(const MarginProblem& problem, const RowMatrix& W);

  /// Null: all rows.
  const IndexList* list() const { return all_ ? nullptr : &rows_; }
  Index count(const MarginProblem& problem) const { return all_ ? problem.rows() : rows_.size(); }

 private:
  void take_lowest(const Eigen::VectorXd& order, Index count);

  bool all_ = true;
  Index most_ = 0;
  IndexList rows_, next_;
  Buffer<double> sorted_;
};

}  // namespace attsvm::internal
