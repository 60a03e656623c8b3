#pragma once

#include "attsvm/margin.h"
#include "attsvm/report.h"
#include "report/plane.h"

namespace attsvm::internal {

/// A solution that the page shows: what it claims, what verification found, and the problem that it solves.
struct Answer {
  std::string file;  ///< empty: solved for this page
  StoredSolution stored;
  Verification verification;
  std::string rank_words;  ///< what is proven about a nuclear rank; empty: nothing

  /// Whether it is the proven solution of the SVM of this selection, or without one of the graph SVM, in this norm, or
  /// proves that there is none.
  bool settles(std::string_view norm, const Array* select = nullptr) const;
  bool has_W() const;         ///< W is a feasible (d,dz)
  std::string label() const;  ///< W^{mm}, W^{mm}_{*}, … as in figures
};

/// Checks a solution against the task. InputError with the file's name if it does not fit the task.
Answer judged(const AttentionTask& task, const ReportSolution& given);

/// An answer of the solver, verified.
Answer solved_answer(const AttentionTask& task, const MarginProblem& problem, const MarginSolution& solution);

/// The numbers of an answer that JSON holds wherever it tells about one: objective, dual_objective, gap, violation,
/// margin, rank, support and constraints, null where the answer has none.
Json numbers_json(const StoredSolution& solution, double gap, double violation);

/// The penalty of a soft margin: a number if all queries have the same, else a list; null where the margin is hard.
Json penalty_json(const StoredSolution& solution);

/// Numbers, proof in words, conflict, rows, spectrum and, along `axes` if there are any, directions.
Json answer_json(const AttentionTask& task, const Axes* axes, const Answer& answer);

/// Singular values, and divided by the largest; null where W is zero.
Json spectrum_json(const RowMatrix& W);

/// The rows that a page shows of an answer: all, or those with the least slack, in their order.
std::vector<std::size_t> shown_rows(const StoredSolution& stored);

}  // namespace attsvm::internal
