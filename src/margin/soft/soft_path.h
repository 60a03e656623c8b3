#pragma once

#include <Eigen/Cholesky>
#include <functional>

#include "margin/outcome.h"
#include "margin/soft/soft_rows.h"

namespace attsvm::internal {

/// A point of SoftRows: multipliers and their slacks, and per group the slack y and what is left of its limit.
struct SoftPoint {
  Eigen::VectorXd x, s;             ///< per row; s = 0 on equations
  Eigen::VectorXd y, left;          ///< per group; y = 0 and left infinite where no row is soft
  double objective = 0, bound = 0;  ///< ½‖W‖² + Σ limit·y at W = Σ x a, with the y that W needs; what x proves

  double gap() const { return objective > 0 ? (objective - bound) / objective : 0; }
};

/// y of every group that W = Σ x a needs, and what x and this W are worth. `values` are a_k·W.
void measure(const SoftRows& rows, const Eigen::VectorXd& values, SoftPoint& point);

/// Mehrotra's predictor–corrector method on SoftRows. Factorises one matrix per iteration, of the size of the rows or
/// of the unknowns, whichever is smaller.
class SoftPath {
 public:
  explicit SoftPath(const SoftRows& rows);

  /// Follows the path until the gap is at most `tolerance`, or for as long as it shrinks. `stop` gets the objective and
  /// the bound of these rows, once per iteration.
  SolveOutcome follow(double tolerance, const std::function<bool(double objective, double bound)>& stop);

  const SoftPoint& best() const { return best_; }
  Index iterations() const { return iterations_; }
  /// a_k·a_l of some rows.
  Eigen::MatrixXd gram_of(const std::vector<Index>& some) const;

 private:
  struct Step {
    Eigen::VectorXd x, s, y, left;
  };

  Eigen::VectorXd products(const Eigen::VectorXd& x) const;
  void start();
  bool factor();
  Eigen::VectorXd solve(const Eigen::VectorXd& right) const;
  Eigen::VectorXd solve_once(const Eigen::VectorXd& right) const;
  Eigen::VectorXd weighted(const Eigen::VectorXd& t) const;
  Step direction(const Eigen::VectorXd& aim_x, const Eigen::VectorXd& aim_y) const;
  double reach(const Step& step) const;
  double complementarity(const Step* step, double length) const;

  const SoftRows& rows_;
  bool by_rows_;                  // factorises in the rows, else in the unknowns
  Eigen::MatrixXd G_, A_;         // Gram matrix of the rows, or the rows themselves
  Eigen::VectorXd group_soft_;    // 1 where a group has soft rows, else 0
  Eigen::VectorXd weight_, tau_;  // x/s per row and y/left per group
  Eigen::LLT<Eigen::MatrixXd> factor_;
  SoftPoint now_, best_;
  Eigen::VectorXd values_, miss_x_, miss_y_;  // a_k·W; residuals of both equations
  double pairs_ = 0;
  Index iterations_ = 0;
};

}  // namespace attsvm::internal
