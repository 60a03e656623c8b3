#pragma once

#include <cstdint>
#include <vector>

#include "base/limits.h"
#include "margin/streaming/working_rows.h"

namespace attsvm::internal {

/// How far rows are from being met.
struct RowSummary {
  double least = kInfinity;  ///< smallest value/rhs of the rows with a positive rhs; infinite if there are none
  double violation = 0;      ///< largest violation of rows that no scaling of W can fix
  void include(const RowSummary& other);
};

/// Which rows a round keeps and adds.
struct ChoiceRules {
  Index most;             ///< most rows added per query
  double within;          ///< an idle row stays while its slack is below this
  double tolerance;       ///< for value/rhs: rows closer to being met are not added
  double violation;       ///< the same for rows that no scaling can fix
  bool anything = false;  ///< also adds rows that are met, least slack first; for the first round
};

/// Evaluates every row of a problem and chooses the next working set: idle rows leave, the most violated ones enter.
class RowChoice {
 public:
  RowChoice(ScaledProblem& problem, const WorkingRows& rows);

  /// Chooses rows by their values at W, in one pass over the tokens.
  RowSummary choose(const double* W, const ChoiceRules& rules);
  /// The summary of all processes.
  RowSummary of_all(RowSummary here) const;
  /// Includes a row of the problem with the given value in the summary.
  void see(Index row, double value, RowSummary& summary) const;
  /// Chooses all equalities and the rows whose multiplier is not zero.
  void choose_from(const Eigen::VectorXd& lambda);

  const std::vector<std::vector<PickedRow>>& picked() const { return picked_; }
  Index added() const { return added_; }
  Index dropped() const { return dropped_; }

 private:
  struct Group {
    RowSummary summary;
    Index added, dropped;
  };
  void choose_group(Index i, const double* logits, const ChoiceRules& rules);
  void count();
  bool mendable(Index row) const { return problem_->stretchable() && problem_->problem().rhs(row) > 0; }

  ScaledProblem* problem_;
  const WorkingRows* rows_;
  std::vector<std::vector<PickedRow>> picked_;
  std::vector<Group> groups_;
  Index added_ = 0, dropped_ = 0;
};

}  // namespace attsvm::internal
