#pragma once

#include <functional>
#include <vector>

#include "attsvm/margin.h"
#include "base/blas.h"
#include "base/buffer.h"
#include "base/limits.h"
#include "margin/outcome.h"
#include "margin/rows/row_products.h"

namespace attsvm::internal {

/// Proximal steps on the dual of min ½‖W‖² over rows a_k·W ≥ b_k, all b_k > 0, for problems with few support rows,
/// however ill-conditioned they are: attention heads of real models.
///
/// A step minimises ½‖W‖² + σ/2 Σ max(0, b_k − a_k·W + λ_k/σ)² with the λ of the step before; its λ are σ times the
/// maxima, and σ grows from step to step. The function is smooth and piecewise quadratic, so that Newton's method with
/// an exact line search ends after finitely many faces. Its equations have one unknown per row of the face,
/// (K + I/σ) λ = b + λ_before/σ, which is well-posed even where rows depend on each other, and are factorised densely
/// in double. Only rows that were violated at some point are worked with. Rows count in units of their length.
class ProximalSolver {
 public:
  using Outcome = SolveOutcome;  ///< stalled: the face is too large for this method, or the rows conflict

  /// The largest face that is factorised.
  static Index largest_face(const MarginProblem& problem);

  /// std::logic_error unless every row is ≥ b with b > 0. The problem must outlive the solver.
  ProximalSolver(const MarginProblem& problem, Threads& threads);

  /// `warm_dual`: multipliers to start from, one per row, up to a positive factor; or null. `stop` is called in every
  /// Newton step.
  Outcome solve(double tolerance, const Eigen::VectorXd* warm_dual,
                const std::function<bool(const SolveProgress&)>& stop);

  /// The best W so far, scaled to meet the rows if that is possible, and the multipliers with the best bound.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }  ///< Newton steps
  const std::vector<SolveProgress>& history() const { return history_; }

 private:
  void start_cold();
  bool start_warm(const Eigen::VectorXd& dual);
  void measure(const Eigen::VectorXd& W, Eigen::VectorXd& value);
  bool recruit();
  bool choose_face(bool with_anchor);
  void gather_face();
  bool solve_face();
  void weigh_face(const Eigen::VectorXd& multipliers, Eigen::VectorXd& W);
  double step_length() const;
  double gap() const { return 1 - best_bound_ / best_objective_; }
  void judge_dual();
  void judge_primal();

  SingleThreadBlas blas_;
  const MarginProblem& problem_;
  Threads& threads_;
  RowProducts products_;
  Index d_, dz_;
  double scale_ = 1;            // W of the problem / W here
  bool impossible_ = false;     // a row is zero
  Eigen::VectorXd size_, rhs_;  // ‖a_k‖, b_k/‖a_k‖ over its largest
  Eigen::VectorXd W_, value_;   // the point and a_k·W
  Eigen::VectorXd anchor_;      // λ of the proximal step before
  Eigen::VectorXd missing_;     // b_k − a_k·W + anchor_k/σ
  double sigma_ = 0;
  std::vector<std::uint8_t> member_;  // rows that are worked with
  std::vector<Index> members_;        // the same as a list
  std::vector<Index> face_, last_face_, candidates_;
  Buffer<double> deltas_, zetas_, weighted_, factor_, products_of_zetas_;
  Eigen::VectorXd multiplier_;  // λ of the face
  Eigen::VectorXd newton_W_, newton_value_, W_step_, value_step_, clipped_;

  Eigen::VectorXd best_W_, best_lambda_;
  double best_objective_ = kInfinity, best_bound_ = 0;
  Index iterations_ = 0;
  std::vector<SolveProgress> history_;
};

}  // namespace attsvm::internal
