#pragma once

#include <functional>
#include <vector>

#include "attsvm/margin.h"

namespace attsvm {

/// ⟨A,B⟩_F / (‖A‖_F ‖B‖_F); NaN where one of them is zero.
double correlation(const Eigen::Ref<const RowMatrix>& A, const Eigen::Ref<const RowMatrix>& B);

/// Slack up to which a row is a support row, and the range in which that is a matter of taste.
inline constexpr double kAmbiguousLow = 1e-8, kAmbiguousHigh = 1e-4;

/// A token that the selected one is ahead of by exactly the margin.
struct SupportToken {
  Index query, token;
  double score_gap;  ///< γ_{iα} − γ_it: positive in a locally optimal selection
  double slack;
};

/// What the theory says about a selection of one token a query.
struct SelectionReport {
  MarginSolution solution;              ///< its Frobenius SVM
  bool separable = false;               ///< the SVM has a solution
  bool optimal = false;                 ///< every selected token has the best score (shared ones count)
  bool locally_optimal = false;         ///< separable, and ahead in score of every support token
  std::vector<SupportToken> support;    ///< slack ≤ kSupportTolerance
  std::vector<SupportToken> ambiguous;  ///< slack between kAmbiguousLow and kAmbiguousHigh
  std::vector<SupportToken> ahead;      ///< support tokens that score as high as the selected one, or higher
};

/// InputError if the selection keeps several tokens of a query, or the task has no head. `stop` ends the solve by
/// returning true.
SelectionReport assess_selection(const AttentionTask& task, const Selection& selection, MarginSolver& solver,
                                 const std::function<bool()>& stop = {});

struct LocalOptima {
  Index selections = 0;  ///< looked at: all there are, unless somebody stopped the search
  bool complete = true;  ///< nobody did
  Index separable = 0;
  std::vector<Selection> locally_optimal;  ///< in lexicographic order
};

/// Every locally optimal selection, by looking at all of them. InputError if there are more than `limit`. `progress` is
/// told how many are done, and stops the search by returning true.
LocalOptima enumerate_local_optima(const AttentionTask& task, Index limit, Threads& threads,
                                   const std::function<bool(Index)>& progress = {});

/// How many selections of one token a query there are; stops counting beyond `limit`.
Index count_selections(const AttentionTask& task, Index limit);

/// Turns one token a query into the next such selection in lexicographic order; false after the last one, which
/// becomes the first again.
bool next_selection(const AttentionTask& task, std::vector<Index>& tokens);

}  // namespace attsvm
