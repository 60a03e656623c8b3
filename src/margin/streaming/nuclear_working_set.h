#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "attsvm/margin.h"
#include "margin/streaming/nuclear_newton.h"
#include "margin/streaming/row_choice.h"

namespace attsvm::internal {

/// Solves large nuclear-norm margin problems to a relative gap: a proximal point method, W ← argmin ‖W‖_* +
/// ‖W − C‖²/2τ over the rows, then C ← W. The dual of a proximal step is smooth, and semismooth Newton steps maximise
/// it on a working set of rows; between proximal steps all rows are evaluated at W. The bytes of the answer do not
/// depend on the number of threads.
class NuclearWorkingSet {
 public:
  enum class Outcome : std::uint8_t {
    converged,
    stopped,
    stalled,  ///< 40 rounds did not halve the gap
  };

  /// The problem must outlive the solver. std::logic_error for a value problem.
  NuclearWorkingSet(const MarginProblem& problem, Threads& threads);

  /// Starts from `W` and the multipliers `dual` (any positive multiple), preferably near an optimum: the Frobenius
  /// answer or an earlier nuclear one. `stop` is called in every round and Newton step.
  Outcome solve(double tolerance, const RowMatrix& W, const Eigen::VectorXd& dual,
                const std::function<bool(const SolveProgress&)>& stop);

  /// The best K, Q and λ so far: W = K Qᵀ, balanced, scaled to meet the rows with a positive right-hand side where it
  /// can; λ up to a positive factor.
  void write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }  ///< Newton steps
  const std::vector<SolveProgress>& history() const { return history_; }

 private:
  /// The quality of a point, in the units of the problem.
  struct Standing {
    double stretch, objective, bound, gap, violation;
  };
  struct Best {
    RowMatrix K, Q;
    std::vector<Index> row;
    std::vector<double> lambda;
    double objective = 0, bound = 0;
  };
  /// Relative errors of the rows and of the dual norm.
  struct Residuals {
    double primal, dual;
  };
  void begin(const RowMatrix& W, const Eigen::VectorXd& dual);
  bool recentre();
  bool update();
  bool improve(const Standing& standing);
  void step(double accuracy);
  double try_length(const std::vector<double>& lambda, double from, double to);
  Residuals residuals() const;
  Standing stand(const RowSummary& summary) const;
  double distance(const Standing& standing) const;
  ChoiceRules rules() const;
  void keep_best(const Standing& standing);
  SolveProgress progress() const;

  ScaledProblem problem_;
  WorkingRows rows_;
  NuclearNewton newton_;
  RowChoice choice_;
  SingularSplit split_;
  Buffer<double> W_, centre_, A_, B_, move_W_;  // A = A(λ), B = centre + τA, W = S(B)
  double tau_ = 0, longest_tau_ = 0;
  bool settled_ = false;  // the last proximal step was solved well enough for a longer one

  double tolerance_ = 0, allowed_violation_ = 0;
  std::function<bool(const SolveProgress&)> stop_;
  std::chrono::steady_clock::time_point start_;
  Index round_ = 0, iterations_ = 0;
  Best best_;
  std::vector<SolveProgress> history_;
};

}  // namespace attsvm::internal
