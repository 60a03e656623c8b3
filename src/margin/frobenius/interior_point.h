#pragma once

#include <functional>
#include <vector>

#include "attsvm/margin.h"
#include "base/blas.h"
#include "base/limits.h"
#include "margin/frobenius/normal_matrix.h"
#include "margin/outcome.h"
#include "margin/rows/normal_equations.h"

namespace attsvm::internal {

/// Mehrotra's predictor–corrector method on min ½‖W‖² over rows a_k·W − s_k = b_k, s ≥ 0: for problems of few unknowns
/// (d·dz to about 2000) and far more rows. The number of iterations hardly depends on the data; each costs one
/// factorisation in the unknowns and about ten passes over the tokens.
class InteriorPointSolver {
 public:
  using Outcome = SolveOutcome;  ///< stalled: the rows conflict, leave W no room, or rounding is reached

  /// std::logic_error if a row is an equality. The problem must outlive the solver.
  InteriorPointSolver(const MarginProblem& problem, Threads& threads);

  /// `stop` is called in every iteration and ends the solve by returning true.
  Outcome solve(double tolerance, const std::function<bool(const SolveProgress&)>& stop);

  /// The best W so far, scaled to meet the rows if that is possible, and the multipliers with the best bound.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }
  const std::vector<SolveProgress>& history() const { return history_; }

 private:
  struct Standing;
  struct Reach {
    double primal = kInfinity, dual = kInfinity;  // longest steps that keep s and λ positive
    void operator+=(const Reach& other) {
      primal = std::min(primal, other.primal);
      dual = std::min(dual, other.dual);
    }
  };

  bool start();
  Standing standing() const;
  void keep_best(const Standing& now);
  void aim_at_boundary();
  void aim_at_center(double product);
  Reach direction(double tolerance);
  double complementarity_after(Reach reach) const;
  void advance(double step);
  void refresh();
  void solve_normal(double tolerance);
  void sharpen(double tolerance);
  double bound_of(const Eigen::VectorXd& lambda, const Eigen::VectorXd& weighted) const;
  Outcome iterate(double tolerance, const std::function<bool(const SolveProgress&)>& stop);

  SingleThreadBlas blas_;
  const MarginProblem& problem_;
  NormalEquations equations_;
  RowProducts& products_;
  NormalMatrix normal_;
  const RowLoop& loop_;
  Eigen::VectorXd rhs_;      // of the problem; −1 on rows that are zero
  double live_ = 0;          // rows that are not zero
  double scale_ = 1;         // largest right-hand side
  bool impossible_ = false;  // a zero row has b > 0

  Eigen::VectorXd W_, weighted_;            // weighted_ = Σ λ_k a_k
  Eigen::VectorXd value_, slack_, lambda_;  // a_k·W, s, λ
  bool fresh_ = true;                       // value_ and weighted_ are computed, not updated
  Eigen::VectorXd target_, weight_;         // Newton's equations read Δλ = target − weight·a_k·ΔW
  Eigen::VectorXd slack_step_, lambda_step_, right_;

  Eigen::VectorXd best_W_, best_lambda_;
  double best_objective_ = 0, best_bound_ = 0;
  Index iterations_ = 0;
  std::vector<SolveProgress> history_;
};

}  // namespace attsvm::internal
