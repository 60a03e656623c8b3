#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "attsvm/margin.h"
#include "margin/streaming/face_newton.h"
#include "margin/streaming/row_choice.h"

namespace attsvm::internal {

/// Solves large Frobenius margin problems to a relative gap. Every round evaluates all rows at W in one pass over the
/// tokens, drops idle rows from the working set and adds the most violated ones, then improves λ on the working set by
/// Newton steps on its face. W = A(λ) throughout. The bytes of the answer do not depend on the number of threads.
class WorkingSetSolver {
 public:
  enum class Outcome : std::uint8_t {
    converged,
    stopped,
    stalled,  ///< 40 rounds did not halve the gap: conflicting rows, or a face that is too singular
  };

  /// The problem must outlive the solver. std::logic_error for a value problem.
  WorkingSetSolver(const MarginProblem& problem, Threads& threads);

  /// `warm_dual`: multipliers to start from (any positive multiple; ignored unless there is one per row), or null.
  /// `stop` is called in every round and Newton step.
  Outcome solve(double tolerance, const Eigen::VectorXd* warm_dual,
                const std::function<bool(const SolveProgress&)>& stop);

  /// The best λ so far, scaled so that W = A(λ) meets the rows with a positive right-hand side where it can, and W.
  void write(RowMatrix& W, Eigen::VectorXd& lambda) const;

  Index iterations() const { return iterations_; }  ///< Newton steps
  const std::vector<SolveProgress>& history() const { return history_; }

 private:
  /// The quality of a point, in the units of the problem.
  struct Standing {
    double stretch, objective, bound, gap, violation;
  };
  struct Best {
    std::vector<Index> row;
    std::vector<double> lambda;
    double stretch = 1, objective = 0, bound = 0;
  };
  void start_cold();
  void start_from(const Eigen::VectorXd& lambda);
  bool improve(const Standing& standing);
  Standing stand(const RowSummary& summary) const;
  RowSummary summarize_working_rows() const;
  double distance(const Standing& standing) const;
  void watch_progress();
  ChoiceRules rules(const Standing& standing) const;
  void keep_best(const Standing& standing, bool certainly);
  void keep_point(double stretch);
  SolveProgress progress() const;

  ScaledProblem problem_;
  WorkingRows rows_;
  FaceNewton newton_;
  RowChoice choice_;
  Buffer<double> W_;

  double tolerance_ = 0, allowed_violation_ = 0;
  std::function<bool(const SolveProgress&)> stop_;
  std::chrono::steady_clock::time_point start_;
  Index round_ = 0, iterations_ = 0;
  Index most_ = 0, added_before_ = 0;  // rows that a query may add; rows that all queries added in the last round
  Best best_;
  std::vector<SolveProgress> history_;
};

}  // namespace attsvm::internal
