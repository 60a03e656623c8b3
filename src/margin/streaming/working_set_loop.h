#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "attsvm/margin.h"
#include "base/limits.h"
#include "margin/outcome.h"
#include "margin/streaming/row_choice.h"

namespace attsvm::internal {

/// The rounds of a working-set method, whatever the norm. Every round evaluates all rows at W in one pass over the
/// tokens, drops idle rows from the working set and adds the most violated ones; then the method improves W and λ on
/// the working set. The bytes of the answer do not depend on the number of threads.
///
/// A method derives from the loop, befriends it, and has
///   ChoiceRules rules(const Standing&)               which rows the next round takes, by the standing after the last
///   Standing stand(const RowSummary&)                the quality of the present point
///   double judge(const Standing&)                    keeps the point if it is the best; the distance from the goal
///   std::optional<Outcome> advance(const Standing&)  works on the working set; an outcome ends the solve
class WorkingSetLoop {
 public:
  using Outcome = SolveOutcome;  ///< stalled: 40 rounds did not halve the gap; rows conflict, or a face is too singular

  Index iterations() const { return iterations_; }  ///< Newton steps
  const std::vector<SolveProgress>& history() const { return history_; }

 protected:
  /// The quality of a point, in the units of the problem.
  struct Standing {
    double stretch = 1, objective = kInfinity, bound = 0, gap = 1, violation = kInfinity;
  };
  /// Multipliers of a working set that the rows have since moved on from.
  struct KeptRows {
    std::vector<Index> row;
    std::vector<double> lambda;
    Index all = 0;  // rows kept by all processes
    void take(const WorkingRows& rows);
    /// One multiplier per row of the problem: `factor` times the kept one, or 0.
    void spread(double factor, Index rows, Eigen::VectorXd& out) const;
  };

  /// The problem must outlive the loop. std::logic_error for a value problem.
  WorkingSetLoop(const MarginProblem& problem, Threads& threads, const SharedRows* shared);

  /// Forgets earlier solves. `stop` is called in every round and Newton step. False: W = 0 is the answer.
  bool begin(double tolerance, const std::function<bool(const SolveProgress&)>& stop);
  /// Takes the rows that have a multiplier, and dual/scale as their λ.
  void start_from(const Eigen::VectorXd& dual, double scale);
  /// Goes on until the goal is reached, or until kPatience rounds neither halve the distance from it nor raise the
  /// bound by the factor `raised`.
  template <class Method>
  Outcome run(Method& method, double raised);

  Standing stand_at(const RowSummary& summary, double bound, double norm) const;
  double distance(const Standing& standing) const;
  /// The objective of a point, infinite if it does not meet the rows.
  double feasible_objective(const Standing& standing) const {
    return standing.violation <= allowed_violation_ ? standing.objective : kInfinity;
  }
  ChoiceRules choose_within(double within, Index most) const;
  SolveProgress progress() const;
  bool asked_to_stop() const { return stop_ && stop_(progress()); }

  static constexpr double kCaution = 0.9;  ///< share of the tolerance, because the certifier rounds differently

  ScaledProblem problem_;
  WorkingRows rows_;
  RowChoice choice_;
  Buffer<double> W_;
  double tolerance_ = 0;
  Index round_ = 0, iterations_ = 0;
  double best_objective_ = kInfinity, best_bound_ = 0;

 private:
  static constexpr Index kPatience = 40;  // by hand

  double allowed_violation_ = 0;
  std::function<bool(const SolveProgress&)> stop_;
  std::chrono::steady_clock::time_point start_;
  std::vector<SolveProgress> history_;
};

template <class Method>
WorkingSetLoop::Outcome WorkingSetLoop::run(Method& method, double raised) {
  Standing standing;
  double closest = 1, highest = 0;
  Index closest_round = 0;
  for (round_ = 1;; ++round_) {
    standing = method.stand(choice_.choose(W_.data(), method.rules(standing)));
    const double now = method.judge(standing);
    history_.push_back(progress());
    if (now <= tolerance_) return Outcome::converged;
    if (now <= 0.5 * closest || standing.bound >= raised * highest) {  // a feasible W may come late
      closest = std::min(now, closest);
      highest = std::max(standing.bound, highest);
      closest_round = round_;
    } else if (round_ - closest_round >= kPatience) {
      return Outcome::stalled;
    }
    if (stop_ && stop_(history_.back())) return Outcome::stopped;
    choice_.added() + choice_.dropped() > 0 ? rows_.rebuild(choice_.picked()) : rows_.take_values(choice_.picked());
    if (const std::optional<Outcome> end = method.advance(standing)) return *end;
  }
}

}  // namespace attsvm::internal
