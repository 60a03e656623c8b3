#pragma once

#include "margin/streaming/nuclear_newton.h"
#include "margin/streaming/working_set_loop.h"

namespace attsvm::internal {

/// Solves large nuclear-norm margin problems to a relative gap: a proximal point method, W ← argmin ‖W‖_* +
/// ‖W − C‖²/2τ over the rows, then C ← W. The dual of a proximal step is smooth, and semismooth Newton steps maximise
/// it on a working set of rows; between proximal steps all rows are evaluated at W.
class NuclearWorkingSet : public WorkingSetLoop {
 public:
  /// The problem must outlive the solver. std::logic_error for a value problem. `shared` as in RowSums.
  NuclearWorkingSet(const MarginProblem& problem, Threads& threads, const SharedRows* shared = nullptr);

  /// Starts from `W` and the multipliers `dual` (any positive multiple), preferably near an optimum: the Frobenius
  /// answer or an earlier nuclear one. `stop` is called in every round and Newton step.
  Outcome solve(double tolerance, const RowMatrix& W, const Eigen::VectorXd& dual,
                const std::function<bool(const SolveProgress&)>& stop);

  /// The best K, Q and λ so far: W = K Qᵀ, balanced, scaled to meet the rows with a positive right-hand side where it
  /// can; λ up to a positive factor.
  void write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const;

 private:
  friend class WorkingSetLoop;

  struct Best : KeptRows {
    RowMatrix K, Q;
  };
  /// Relative errors of the rows and of the dual norm.
  struct Residuals {
    double primal, dual;
  };
  void start(const RowMatrix& W, const Eigen::VectorXd& dual);
  ChoiceRules rules(const Standing& standing) const;
  Standing stand(const RowSummary& summary) const;
  double judge(const Standing& standing);
  std::optional<Outcome> advance(const Standing& standing);
  bool recentre();
  bool update();
  bool improve(const Standing& standing);
  void step(double accuracy);
  double try_length(const std::vector<double>& lambda, double from, double to);
  Residuals residuals() const;
  void keep_factors(double stretch);

  NuclearNewton newton_;
  SingularSplit split_;
  Buffer<double> centre_, A_, B_, move_W_;  // A = A(λ), B = centre + τA, W = S(B)
  double tau_ = 0, longest_tau_ = 0;
  bool settled_ = false;  // the last proximal step was solved well enough for a longer one
  Best best_;
};

}  // namespace attsvm::internal
