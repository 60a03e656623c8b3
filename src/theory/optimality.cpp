#include <algorithm>
#include <cmath>

#include "base/refuse.h"
#include "base/time_limit.h"
#include "theory/selections.h"

namespace attsvm {

using namespace internal;

namespace {

/// γ_it of the visible tokens, with the tolerance within which two scores of a query count as equal.
class Scores {
 public:
  explicit Scores(const AttentionTask& task) : task_(task), values_(head_values(task)) {}

  double operator()(Index query, Index token) const {
    return task_.label(query) * values_[static_cast<std::size_t>(task_.offset(task_.sequence(query)) + token)];
  }
  double tolerance(Index query) const {
    double largest = 0;
    for (const Index t : task_.seen(query)) largest = std::max(largest, std::abs((*this)(query, t)));
    return kTieTolerance * largest;
  }
  bool is_best(Index query, Index token) const {
    const double own = (*this)(query, token) + tolerance(query);
    for (const Index t : task_.seen(query)) {
      if ((*this)(query, t) > own) return false;
    }
    return true;
  }

 private:
  const AttentionTask& task_;
  std::vector<double> values_;
};

/// Fills in what follows from the solution of the selection's SVM.
void judge(const MarginProblem& problem, const MarginSolution& solution, const Scores& scores,
           SelectionReport& report) {
  report.support.clear();
  report.ambiguous.clear();
  report.ahead.clear();
  report.separable = solution.status == MarginStatus::optimal;
  for (const MarginGroup& group : problem.groups()) {
    if (!report.separable) break;
    const double tie = scores.tolerance(group.query);
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      const double slack = solution.slack(k);
      if (slack > kAmbiguousHigh) continue;
      const Index t = problem.drop_token(group, k), keep = problem.keep_token(group);
      const SupportToken token{group.query, t, scores(group.query, keep) - scores(group.query, t), slack};
      if (slack > kAmbiguousLow) report.ambiguous.push_back(token);
      if (slack > kSupportTolerance) continue;
      report.support.push_back(token);
      if (token.score_gap <= tie) report.ahead.push_back(token);
    }
  }
  report.locally_optimal = report.separable && report.ahead.empty();
}

}  // namespace

double correlation(const Eigen::Ref<const RowMatrix>& A, const Eigen::Ref<const RowMatrix>& B) {
  return A.cwiseProduct(B).sum() / (A.stableNorm() * B.stableNorm());
}

SelectionReport internal::assess_selection(const AttentionTask& task, const Selection& selection,
                                           const SolveSettings& settings, MarginSolver& solver) {
  for (Index i = 0; i < task.queries(); ++i) {
    if (selection.kept(i).size() > 1)
      refuse("query {} keeps several tokens; local optimality is defined for one token per query", i);
  }
  const MarginProblem problem = MarginProblem::attention(task, selection);
  return report_on(task, problem, solver.solve(problem, settings));
}

SelectionReport internal::report_on(const AttentionTask& task, const MarginProblem& problem,
                                    const MarginSolution& solution) {
  const Scores scores(task);
  SelectionReport report{.solution = solution};
  judge(problem, solution, scores, report);
  report.optimal = true;
  for (Index i = 0; i < task.queries(); ++i) {
    report.optimal = report.optimal && scores.is_best(i, problem.selection().first(i));
  }
  return report;
}

Index internal::count_selections(const AttentionTask& task, Index limit) {
  Index count = 1;
  for (Index i = 0; i < task.queries(); ++i) {
    if (count > limit / task.visible(i)) return limit + 1;
    count *= task.visible(i);
  }
  return count;
}

std::vector<Index> internal::first_selection(const AttentionTask& task) {
  std::vector<Index> tokens;
  for (Index i = 0; i < task.queries(); ++i) tokens.push_back(task.seen(i).front());
  return tokens;
}

bool internal::next_selection(const AttentionTask& task, std::vector<Index>& tokens) {
  for (Index i = task.queries() - 1; i >= 0; --i) {
    Index& token = tokens[static_cast<std::size_t>(i)];
    const auto seen = task.seen(i);
    const auto next = std::upper_bound(seen.begin(), seen.end(), token);
    token = next != seen.end() ? *next : seen.front();
    if (next != seen.end()) return true;
  }
  return false;
}

LocalOptima enumerate_local_optima(const AttentionTask& task, const EnumerationSettings& settings, Threads& threads) {
  const Index count = count_selections(task, settings.limit);
  if (count > settings.limit)
    refuse("the task has more than {} selections; raise the limit, or check a single selection", settings.limit);
  const TimeLimit limit(settings.time_limit);
  constexpr Index kBatch = 256;
  const Scores scores(task);
  LocalOptima found;
  std::vector<Index> tokens = first_selection(task);
  std::vector<MarginProblem> problems;
  MarginSolver solver(threads);
  while (found.selections < count) {
    if (limit.over() || (settings.progress && settings.progress({found.selections, count}))) {
      found.complete = false;
      break;
    }
    problems.clear();
    for (Index k = 0; k < kBatch && found.selections < count; ++k, ++found.selections) {
      problems.push_back(MarginProblem::attention(task, Selection::single(tokens)));
      next_selection(task, tokens);
    }
    const std::span<const MarginSolution> solutions = solver.solve_many(problems, {});
    SelectionReport report;
    for (std::size_t k = 0; k < problems.size(); ++k) {
      judge(problems[k], solutions[k], scores, report);
      found.separable += report.separable ? 1 : 0;
      if (report.locally_optimal) found.locally_optimal.push_back(problems[k].selection());
    }
  }
  return found;
}

}  // namespace attsvm
