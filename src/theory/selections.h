#pragma once

#include "attsvm/theory.h"

namespace attsvm::internal {

/// Judges a selection of one token per query; `settings` are those of its solve. InputError if a query keeps several
/// tokens, or the task has no head.
SelectionReport assess_selection(const AttentionTask& task, const Selection& selection, const SolveSettings& settings,
                                 MarginSolver& solver);

/// The same where the SVM of the selection is solved.
SelectionReport report_on(const AttentionTask& task, const MarginProblem& problem, const MarginSolution& solution);

/// How many selections of one token per query the task has; stops counting beyond `limit`.
Index count_selections(const AttentionTask& task, Index limit);

/// The first token that each query sees.
std::vector<Index> first_selection(const AttentionTask& task);

/// Replaces `tokens`, one per query, by the next selection in lexicographic order. After the last selection it goes
/// back to the first and returns false.
bool next_selection(const AttentionTask& task, std::vector<Index>& tokens);

/// The tokens with attention of at least `threshold`, and always the one of largest attention. `log_attention` is
/// (q,T), as AttentionMap::log_weights.
Selection kept_tokens(const AttentionTask& task, const RowMatrix& log_attention, double threshold);

/// Splits W into the two parts of an Equivalence. `log_attention` (q,T) is the attention at W; `settings` are those of
/// the solves.
Equivalence fit_equivalence(const AttentionTask& task, const Selection& kept, const RowMatrix& W,
                            const RowMatrix& log_attention, const SolveSettings& settings, MarginSolver& solver);

}  // namespace attsvm::internal
