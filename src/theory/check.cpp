#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/refuse.h"
#include "theory/check_tools.h"
#include "theory/run_shares.h"
#include "theory/selections.h"
#include "theory/shared_check.h"
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

/// Fills in everything that depends only on task and selection, but for the verdict. solve(settings, warm start) solves
/// the problem; `single`: every query keeps one token.
template <class Solve>
void assess(const AttentionTask& task, const MarginProblem& problem, bool single, SolveSettings settings,
            const Solve& solve, Check& check) {
  const MarginSolution* smallest = nullptr;
  if (single) {
    check.report = report_on(task, problem, solve(settings, nullptr));
    smallest = &check.report->solution;
  } else {
    smallest = &check.gen.emplace(solve(settings, nullptr));
  }
  check.separable = smallest->status == MarginStatus::optimal;
  check.decided = is_settled(smallest->status);
  if (check.separable) {
    settings.norm = Norm::nuclear();
    check.nuclear = solve(settings, smallest);
  }
}

void assess(const AttentionTask& task, const SolveSettings& settings, MarginSolver& solver, Check& check) {
  const MarginProblem problem = MarginProblem::attention(task, check.selection);
  const auto solve = [&](const SolveSettings& how, const MarginSolution* warm) -> const MarginSolution& {
    return solver.solve(problem, how, warm);
  };
  assess(task, problem, check.selection.is_single(), settings, solve, check);
  judge(check);
}

void put_tokens(Packer& out, const Selection& selection) {
  for (Index i = 0; i < selection.queries(); ++i) out.put(selection.kept(i));
}

/// What a process found about its queries: each with the tokens that are best and those that are selected.
std::string packed(const Check& check, Index first) {
  Packer out;
  out.put(check.selection.queries());
  put_tokens(out, check.optimal.selection);
  put_tokens(out, check.selection);
  out.put(static_cast<Index>(check.optimal.ties.size()));
  for (const Tie& tie : check.optimal.ties) out.put(tie.query + first).put(std::span(tie.tokens));
  if (!check.report) return out.take();
  out.put(check.report->optimal);
  for (auto member : {&SelectionReport::support, &SelectionReport::ambiguous, &SelectionReport::ahead}) {
    std::vector<SupportToken> tokens = (*check.report).*member;
    for (SupportToken& token : tokens) token.query += first;
    out.put(std::span<const SupportToken>(tokens));
  }
  return out.take();
}

/// Adds up what processes found, in the order of queries.
class WholeCheck {
 public:
  explicit WholeCheck(Check& check) : check_(check) {
    check_.optimal.ties.clear();
    if (!check_.report) return;
    for (auto member : {&SelectionReport::support, &SelectionReport::ambiguous, &SelectionReport::ahead})
      ((*check_.report).*member).clear();
  }

  void add(std::string_view bytes) {
    Unpacker in(bytes);
    const Index queries = in.get<Index>();
    for (auto* tokens : {&optimal_, &selected_}) {
      for (Index i = 0; i < queries; ++i) tokens->push_back(in.list<Index>());
    }
    const Index ties = in.get<Index>();
    for (Index k = 0; k < ties; ++k) {
      const Index query = in.get<Index>();
      check_.optimal.ties.push_back({query, in.list<Index>()});
    }
    if (!check_.report) return;
    SelectionReport& report = *check_.report;
    report.optimal = in.get<bool>() && report.optimal;
    for (auto member : {&SelectionReport::support, &SelectionReport::ambiguous, &SelectionReport::ahead}) {
      const auto more = in.list<SupportToken>();
      (report.*member).insert((report.*member).end(), more.begin(), more.end());
    }
  }

  void judge_all() {
    check_.optimal.selection = Selection::sets(optimal_);
    check_.selection = Selection::sets(selected_);
    if (check_.report) check_.report->locally_optimal = check_.report->separable && check_.report->ahead.empty();
    judge(check_);
  }

 private:
  Check& check_;
  std::vector<std::vector<Index>> optimal_, selected_;
};

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

std::optional<Check> internal::check_shared(const AttentionTask& part, Selection selection,
                                            const CheckSettings& settings, Threads& threads, const SharedRows& shared,
                                            const CollectParts& collect) {
  Check check{.optimal = optimal_tokens(part), .selection = std::move(selection)};
  const MarginProblem problem = MarginProblem::attention(part, check.selection);
  const bool single = !RowSums(problem, &shared).any(!check.selection.is_single());
  const auto solve = [&](const SolveSettings& how, const MarginSolution* warm) {
    std::optional<MarginSolution> found = solve_shared(problem, shared, how, threads, warm);
    if (!found) throw NeedsAllRows{};
    return std::move(*found);
  };
  try {
    assess(part, problem, single, solve_settings(settings, check.complete), solve, check);
  } catch (const NeedsAllRows&) {
    return std::nullopt;
  }
  const std::string here = packed(check, shared.first);
  WholeCheck all(check);
  collect(here, [&](int /*process*/, std::string_view bytes) { all.add(bytes); });
  if (shared.first == 0) all.judge_all();
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
