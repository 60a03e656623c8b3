#pragma once

#include "margin/streaming/face_newton.h"
#include "margin/streaming/working_set_loop.h"

namespace attsvm::internal {

/// Solves large Frobenius margin problems to a relative gap, by Newton steps on the face of the working set. W = A(λ)
/// throughout.
class WorkingSetSolver : public WorkingSetLoop {
 public:
  /// The problem must outlive the solver. std::logic_error for a value problem. `shared` as in RowSums.
  WorkingSetSolver(const MarginProblem& problem, Threads& threads, const SharedRows* shared = nullptr);

  /// `warm_dual`: multipliers to start from (any positive multiple; ignored unless there is one per row), or null.
  /// `stop` is called in every round and Newton step.
  Outcome solve(double tolerance, const Eigen::VectorXd* warm_dual,
                const std::function<bool(const SolveProgress&)>& stop);

  /// The best λ so far, scaled so that W = A(λ) meets the rows with a positive right-hand side where it can, and W.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

 private:
  friend class WorkingSetLoop;

  void start_cold();
  void start_warm(const Eigen::VectorXd& dual);
  ChoiceRules rules(const Standing& standing) const;
  Standing stand(const RowSummary& summary) const;
  double judge(const Standing& standing);
  std::optional<Outcome> advance(const Standing& standing);
  bool improve(const Standing& standing);
  RowSummary summarize_working_rows() const;
  void watch_progress();
  void keep_point(double stretch);

  FaceNewton newton_;
  Index most_ = 0, added_before_ = 0;  // rows that a query may add; rows that all queries added in the last round
  KeptRows best_;
  double best_stretch_ = 1;
};

}  // namespace attsvm::internal
