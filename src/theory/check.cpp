#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/refuse.h"
#include "theory/check_tools.h"
#include "theory/run_shares.h"
#include "theory/selections.h"
#include "theory/step_advice.h"

namespace attsvm {

using namespace internal;

namespace {

void judge(Check& check) {
  check.optimal_selection = check.report ? check.report->optimal : check.selection == check.optimal.selection;
  if (check.decided && !check.separable) {
    check.verdict = Verdict::infeasible;
    check.reason = check.optimal_selection ? "every query selects its best token, but no W separates these tokens"
                                           : "no W separates the selected tokens";
  } else if (check.optimal_selection) {
    check.verdict = Verdict::global;
    check.reason = check.decided ? "every query selects its best token"
                                 : "every query selects its best token; whether a W separates them was not decided";
  } else if (check.report && check.report->locally_optimal) {
    check.verdict = Verdict::local;
    check.reason = "every selected token scores above its support tokens, though not all are best";
  } else if (!check.report) {
    check.reason = "some query keeps several tokens; local optimality is defined for one token per query";
  } else if (!check.decided) {
    check.reason = "whether a W separates the selected tokens was not decided";
  } else {
    const SupportToken& worst = check.report->ahead.front();
    check.reason = fmt::format("query {}: support token {} scores {}", worst.query, worst.token,
                               worst.score_gap < 0 ? "higher than the selected one" : "the same as the selected one");
  }
}

/// Fills in everything that depends only on task and selection.
void assess(const AttentionTask& task, SolveSettings settings, MarginSolver& solver, Check& check) {
  const MarginProblem problem = MarginProblem::attention(task, check.selection);
  const MarginSolution* smallest = nullptr;
  if (check.selection.is_single()) {
    check.report = assess_selection(task, check.selection, settings, solver);
    smallest = &check.report->solution;
  } else {
    smallest = &check.gen.emplace(solver.solve(problem, settings));
  }
  check.separable = smallest->status == MarginStatus::optimal;
  check.decided = is_settled(smallest->status);
  if (check.separable) {
    settings.norm = Norm::nuclear();
    check.nuclear = solver.solve(problem, settings, smallest);
  }
  judge(check);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::global:
      return "global";
    case Verdict::local:
      return "local";
    case Verdict::neither:
      return "neither";
    case Verdict::infeasible:
      return "infeasible";
  }
  throw std::logic_error("unknown verdict");
}

Check check_selection(const AttentionTask& task, Selection selection, const CheckSettings& settings, Threads& threads) {
  Check check{.optimal = optimal_tokens(task), .selection = std::move(selection)};
  const SolveSettings solves = solve_settings(settings, check.complete);
  MarginSolver solver(threads);
  assess(task, solves, solver, check);
  return check;
}

Check check_run(const AttentionTask& task, const RunTrace& run, const CheckSettings& settings, Threads& threads) {
  if (!run.steps.empty() && run.steps.size() != run.record.size())
    refuse("the run has {} steps and {} recorded points; must be as many", run.steps.size(), run.record.size());
  const AttentionMap attention = attention_map(task, run.W, threads);
  const bool sets = task.head().kind != HeadKind::linear;
  Check check{.optimal = optimal_tokens(task),
              .selection = sets ? kept_tokens(task, attention.log_weights, settings.threshold)
                                : Selection::single(attention.selected),
              .implied = run.implied};
  const SolveSettings solves = solve_settings(settings, check.complete);
  MarginSolver solver(threads);
  assess(task, solves, solver, check);
  const MarginSolution& smallest = check.report ? check.report->solution : *check.gen;
  check.correlation_fro = correlations(run.record, solved(smallest));
  check.correlation_nuc = correlations(run.record, check.nuclear ? solved(*check.nuclear) : nullptr);
  if (sets) {
    const Equivalence& fit =
        check.equivalence.emplace(fit_equivalence(task, check.selection, run.W, attention.log_weights, solves, solver));
    check.correlation_gen = correlations(run.record, solved(fit.gen));
    check.correlation_equivalence = correlations(run.record, fit.holds_together() ? &fit.W : nullptr);
    check.correlation_single = correlations(run.record, solved(fit.single));
  }
  std::vector<const MarginSolution*> known{&smallest};
  if (check.nuclear) known.push_back(&*check.nuclear);
  RunShares shares =
      shares_along(run, MarginProblem::attention(task, check.selection), known, settings.norms, solves, solver);
  check.shares = std::move(shares.list);
  check.implied_solution = std::move(shares.implied);
  for (const MarginShares& one : check.shares) {
    if (!run.implied || one.norm != run.implied->norm || run.steps.empty()) continue;
    check.advice = step_advice({.settings = run.settings,
                                .steps = run.steps,
                                .gaps = shares.smallest,
                                .margin = one.margin,
                                .rho = one.rho.back()});
  }
  return check;
}

void CheckSettings::add(const Norm& norm) {
  if (std::find(norms.begin(), norms.end(), norm) == norms.end()) norms.push_back(norm);
}

Check check_run(const AttentionTask& task, const RowMatrix& W, std::span<const ConstRows> record,
                const CheckSettings& settings, Threads& threads) {
  return check_run(task, RunTrace{.W = W, .record = record}, settings, threads);
}

}  // namespace attsvm
