#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "attsvm/margin.h"
#include "margin/nuclear_newton.h"
#include "margin/row_choice.h"

namespace attsvm {

/// Solves large nuclear-norm margin problems to a relative gap: a proximal point method, W ← argmin ‖W‖_* +
/// ‖W − C‖²/2τ over the rows, then C ← W. A step's dual is smooth and is maximised by semismooth Newton steps on a
/// working set of rows; between steps all rows are priced at W. The bytes of the answer do not depend on the number of
/// threads.
class NuclearWorkingSet {
 public:
  enum class Outcome : std::uint8_t {
    converged,
    stopped,
    stalled,  ///< 40 rounds did not halve the gap
  };

  /// The problem must outlive the solver. logic_error for a value problem.
  NuclearWorkingSet(const MarginProblem& problem, Threads& threads);

  /// From `W` and the multipliers `dual` (any positive multiple), best near an optimum: that of the Frobenius norm, or
  /// an earlier nuclear one. `stop` is asked every round and every Newton step.
  Outcome solve(double tolerance, const RowMatrix& W, const Eigen::VectorXd& dual,
                const std::function<bool(const SolveProgress&)>& stop);

  /// The best K, Q and λ so far: W = K Qᵀ, balanced, scaled to meet the rows with a positive right-hand side where it
  /// can; λ up to a positive factor.
  void write(RowMatrix& K, RowMatrix& Q, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }  ///< Newton steps
  const std::vector<SolveProgress>& history() const { return history_; }

 private:
  /// Where a point stands, in the units of the problem.
  struct Standing {
    double stretch, objective, bound, gap, violation;
  };
  struct Best {
    RowMatrix K, Q;
    std::vector<Index> row;
    std::vector<double> lambda;
    double objective = 0, bound = 0;
  };
  /// How far rows and dual norm are from what they shall be, both relative to one.
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

}  // namespace attsvm
