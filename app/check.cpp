#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/refuse.h"
#include "check_next_token.h"
#include "options.h"
#include "ranks/ranks.h"
#include "report/run_answer.h"
#include "run_answer.h"
#include "stack_answer.h"
#include "task_of_ranks.h"
#include "theory/head_division.h"
#include "theory/shared_check.h"
#include "theory/unsolved.h"

namespace attsvm::internal {
namespace {

struct CheckOptions {
  std::string task, run, select;
  std::optional<Index> head;
  std::vector<std::string> norms;
  bool enumerate = false;
  CheckSettings settings;
  EnumerationSettings enumeration;
  StackCheckOptions stack;
  std::vector<const CLI::Option*> not_for_stacks, for_stacks;
};

Json support_json(const std::vector<SupportToken>& tokens) {
  Json list = Json::array();
  for (const SupportToken& token : tokens) {
    list.push_back(
        {{"query", token.query}, {"token", token.token}, {"score_gap", token.score_gap}, {"slack", token.slack}});
  }
  return list;
}

/// The Frobenius solution for the selection: Att-SVM for single tokens, Gen-SVM for sets.
const MarginSolution& smallest(const Check& check) { return check.report ? check.report->solution : *check.gen; }

Json to_json(const Check& check, const std::optional<StoredRun>& run, const std::optional<LocalOptima>& optima,
             const CheckOptions& options, bool stopped, int threads) {
  Json fields{{"optimal", check.optimal.selection.firsts()},
              {"ties", ties_json(check.optimal.ties)},
              {"selected", check.selection.firsts()},
              {"separable", check.decided ? Json(check.separable) : Json(nullptr)},
              {"locally_optimal", check.report && check.decided ? Json(check.report->locally_optimal) : Json(nullptr)},
              {"is_optimal", check.optimal_selection},
              {"verdict", name_of(check.verdict)},
              {"reason", check.reason},
              {"support", support_json(check.report ? check.report->support : std::vector<SupportToken>{})},
              {"ambiguous", support_json(check.report ? check.report->ambiguous : std::vector<SupportToken>{})},
              {"objective_fro", objective_json(&smallest(check))},
              {"objective_nuc", objective_json(check.nuclear ? &*check.nuclear : nullptr)}};
  if (!check.selection.is_single()) fields["kept"] = sets_json(check.selection);
  if (run) {
    fields["record_step"] = run->record_step;
    fields["correlation_fro"] = check.correlation_fro;
    fields["correlation_nuc"] = check.correlation_nuc;
    add_shares(fields, check.shares, check.implied);
    const RunAnswer answer = answer_of(check, *run);
    fields["answer"] = answer.text;
    fields["converges"] = answer.converges;
    fields["predicted_svm"] = answer.predicted;
    fields["exponent"] = answer.exponent;
    fields["advice"] = check.advice.empty() ? Json(nullptr) : Json(check.advice);
  }
  if (check.equivalence) {
    fields["kept"] = sets_json(check.selection);
    fields["correlation_gen"] = check.correlation_gen;
    fields["correlation_equivalence"] = check.correlation_equivalence;
    fields["correlation_single"] = check.correlation_single;
    fields["R"] = check.equivalence->holds_together() ? Json(check.equivalence->R) : Json(nullptr);
    fields["threshold"] = options.settings.threshold;
  }
  if (optima) {
    Json list = Json::array();
    for (const Selection& selection : optima->locally_optimal) list.push_back(selection.firsts());
    fields["enumerated"] = {{"selections", optima->selections},
                            {"separable", optima->separable},
                            {"locally_optimal", list},
                            {"complete", optima->complete}};
  }
  fields["complete"] = !stopped;
  fields["unsolved"] = unsolved_json(unsolved(check));
  fields["time_limit"] = options.settings.time_limit;
  fields["run"] = options.run.empty() ? Json(nullptr) : Json(options.run);
  fields["select"] = options.select.empty() ? Json(nullptr) : Json(options.select);
  fields["head"] = options.head ? Json(*options.head) : Json(nullptr);
  fields["seed"] = nullptr;
  fields["threads"] = threads;
  return fields;
}

std::string selection_text(const Selection& selection) {
  constexpr Index kShown = 20;
  std::vector<std::string> texts;
  for (Index i = 0; i < std::min(kShown, selection.queries()); ++i) {
    const auto kept = selection.kept(i);
    const std::string tokens = fmt::format("{}", fmt::join(kept, ","));
    texts.push_back(kept.size() == 1 ? tokens : "{" + tokens + "}");
  }
  if (selection.queries() > kShown) texts.push_back(fmt::format("... ({} queries)", selection.queries()));
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string one_minus(double correlation) {
  return std::isnan(correlation) ? "-" : fmt::format("{:.3g}", 1 - correlation);
}

void print_correlations(const Check& check, const StoredRun& run) {
  constexpr std::size_t kShown = 12;
  const std::size_t count = run.record.size(), stride = (count + kShown - 1) / std::max<std::size_t>(kShown, 1);
  const bool sets = check.equivalence.has_value();
  fmt::print("  1 - correlation of the run's W with\n  {:>10} {:>12} {:>12}{}\n", "step", "Frobenius", "nuclear",
             sets ? fmt::format(" {:>12} {:>12}", "equivalence", "one token") : "");
  for (std::size_t r = 0; r < count; ++r) {
    if (r + 1 != count && r % std::max<std::size_t>(stride, 1) != 0) continue;
    fmt::print("  {:>10} {:>12} {:>12}{}\n", r < run.record_step.size() ? fmt::format("{}", run.record_step[r]) : "?",
               one_minus(check.correlation_fro[r]), one_minus(check.correlation_nuc[r]),
               sets ? fmt::format(" {:>12} {:>12}", one_minus(check.correlation_equivalence[r]),
                                  one_minus(check.correlation_single[r]))
                    : "");
  }
}

/// What theory says about the optimizer, and how much of it the run shows, in one sentence.
std::string implied_text(const Check& check, const StoredRun& run) {
  const auto rule = rule_from_words(run.settings);
  if (!rule) return "the file does not say how the run was trained, so that no norm is named";
  const std::string optimizer = optimizer_text(*rule) + (rule->param == Parametrization::KQ ? " on K and Q" : "");
  if (!check.implied) return optimizer + ": theory names no norm";
  const std::string norm = check.implied->norm.name();
  std::string text = check.implied->proven ? fmt::format("{}: theory for attention names {}", optimizer, norm)
                                           : fmt::format("{}: {} is expected, not proven", optimizer, norm);
  for (const MarginShares& shares : check.shares) {
    if (shares.norm == check.implied->norm && !std::isnan(shares.rho.back()))
      text += fmt::format("; rho_{} = {:.6g}", norm, shares.rho.back());
  }
  return text;
}

void print_table(const Check& check, const std::optional<StoredRun>& run, const std::optional<LocalOptima>& optima,
                 const CheckOptions& options) {
  constexpr std::size_t kShown = 10, kClosest = 3;
  const auto line = [](const std::string& label, const std::string& text) { fmt::print("  {:<12} {}\n", label, text); };
  fmt::print("{}: {}\n", printable(options.run.empty() ? options.task : options.run), name_of(check.verdict));
  if (run) print_field("answer", 11, answer_of(check, *run).text);
  line("because", check.reason);
  line("optimal", selection_text(check.optimal.selection));
  line("selected", selection_text(check.selection));
  line("separable", check.separable ? "yes: " + objectives_text(smallest(check), check.nuclear)
                    : check.decided ? "no W keeps this selection"
                                    : "not decided: the solver did not settle it");
  if (check.report && check.separable) {
    auto closest = check.report->support;
    std::sort(closest.begin(), closest.end(),
              [](const SupportToken& x, const SupportToken& y) { return x.score_gap < y.score_gap; });
    line("support",
         fmt::format("{} tokens ({} ambiguous); closest in score:", closest.size(), check.report->ambiguous.size()));
    for (std::size_t k = 0; k < std::min(kClosest, closest.size()); ++k) {
      line("", fmt::format("query {}: token {}, score gap {:.4g}", closest[k].query, closest[k].token,
                           closest[k].score_gap));
    }
  }
  if (check.equivalence && check.equivalence->holds_together()) {
    line("equivalence", fmt::format("W = finite part + {:.6g} x Gen-SVM", check.equivalence->R));
  }
  if (run && !run->record.empty()) print_correlations(check, *run);
  if (run) {
    line("rho", shares_text(check.shares, check.implied));
    line("implied", implied_text(check, *run));
    if (!check.advice.empty()) print_field("advice", 11, check.advice);
  }
  if (optima) {
    line("enumerated", fmt::format("{} of {} selections are separable, {} are locally optimal{}", optima->separable,
                                   optima->selections, optima->locally_optimal.size(),
                                   optima->complete ? "" : "; stopped before the others were tested"));
    for (std::size_t k = 0; k < std::min(kShown, optima->locally_optimal.size()); ++k) {
      line("", selection_text(optima->locally_optimal[k]));
    }
    if (optima->locally_optimal.size() > kShown) line("", "... --json lists them all");
  }
}

/// Shows a line of progress while the SVMs are solved, until Ctrl-C.
std::function<bool(const SolveProgress&)> watch_solves(ProgressLine& line, const Stopwatch& watch) {
  return [&](const SolveProgress& now) {
    line.show(std::nan(""),
              [&] { return fmt::format("{:.1f} s, solving the SVMs, iteration {}", watch.seconds(), now.iteration); });
    return Session::interrupted();
  };
}

ExitCode run_next_token_check(const Session& session, const AttentionTask& task, const std::optional<StoredRun>& stored,
                              CheckOptions& options, Threads& threads) {
  if (!options.select.empty() || options.enumerate) {
    throw InputError(fmt::format("{} cannot be used with a next-token task: it has labels instead of a selection",
                                 options.enumerate ? "--enumerate" : "--select"));
  }
  Session::watch_interrupts();
  const Stopwatch watch;
  ProgressLine line(session);
  options.settings.progress = watch_solves(line, watch);
  const std::optional<RunTrace> trace = stored ? std::optional(trace_of(*stored)) : std::nullopt;
  const NextTokenCheck check = with_place(
      options.task, [&] { return check_next_token(task, trace ? &*trace : nullptr, options.settings, threads); });
  line.clear();
  if (session.json) {
    Json fields = next_token_json(task, check, stored);
    fields.update({{"complete", check.complete},
                   {"unsolved", unsolved_json(unsolved(check))},
                   {"time_limit", options.settings.time_limit},
                   {"run", options.run.empty() ? Json(nullptr) : Json(options.run)},
                   {"seed", nullptr},
                   {"threads", threads.count()}});
    Session::print_json("check", watch.seconds(), fields);
  } else {
    print_next_token(task, check, stored, options.run.empty() ? options.task : options.run);
  }
  return end_check(session, unsolved(check), !check.complete);
}

/// A run of many heads: each is judged by its own v against the SVM of its own selection.
ExitCode run_heads_check(const Session& session, const AttentionTask& task, const StoredRun& run, CheckOptions& options,
                         Threads& threads) {
  Session::watch_interrupts();
  const Stopwatch watch;
  const double time_limit = options.settings.time_limit;
  ProgressLine line(session);
  options.settings.progress = watch_solves(line, watch);
  std::vector<Check> checks;
  std::vector<Index> selected;
  Unsolved open;
  bool stopped = false;
  Json heads = Json::array();
  for (Index h = 0; h < run.heads; ++h) {
    const std::optional<StoredRun> one = head_of(run, h);
    if (time_limit > 0) options.settings.time_limit = std::max(time_limit - watch.seconds(), 1e-9);
    checks.push_back(with_place(
        options.task, [&] { return check_run(with_head(task, one->v), trace_of(*one), options.settings, threads); }));
    const Check& check = checks.back();
    const std::vector<Index> tokens = check.selection.firsts();
    selected.insert(selected.end(), tokens.begin(), tokens.end());
    for (const auto& [norm, status] : unsolved(check)) open.emplace(fmt::format("{} of head {}", norm, h), status);
    stopped = stopped || !check.complete;
    options.settings.time_limit = time_limit;
    options.head = h;
    heads.push_back(to_json(check, one, {}, options, !check.complete, threads.count()));
  }
  const double seconds = watch.seconds();
  const HeadDivision division = division_of(selected, run.heads);
  line.clear();
  if (session.json) {
    Session::print_json("check", seconds,
                        {{"heads", std::move(heads)},
                         {"distinct_selections", division.distinct},
                         {"tokens_per_query", division.tokens_per_query},
                         {"complete", !stopped},
                         {"time_limit", time_limit},
                         {"run", options.run},
                         {"seed", nullptr},
                         {"threads", threads.count()}});
    return end_check(session, open, stopped);
  }
  fmt::print("{}: {} heads with {} different selections, {:.3g} different tokens per query\n", options.run, run.heads,
             division.distinct, division.tokens_per_query);
  fmt::print("  {:>4} {:>10} {:>14} {:>14}  {}\n", "head", "verdict", "1 - corr. fro", "1 - corr. nuc", "selected");
  for (std::size_t h = 0; h < checks.size(); ++h) {
    const Check& check = checks[h];
    const auto last = [](const std::vector<double>& along) { return along.empty() ? "-" : one_minus(along.back()); };
    fmt::print("  {:>4} {:>10} {:>14} {:>14}  {}\n", h, name_of(check.verdict), last(check.correlation_fro),
               last(check.correlation_nuc), selection_text(check.selection));
  }
  fmt::print("  {} shows one of them in full\n", kHeadOption);
  return end_check(session, open, stopped);
}

/// InputError if one of these options was given; `why` completes the message.
void refuse_given(const std::vector<const CLI::Option*>& options, std::string_view why) {
  for (const CLI::Option* option : options) {
    if (option->count() > 0) throw InputError(fmt::format("{} {}", option->get_name(), why));
  }
}

/// Whether ranks can share the task: runs and enumerations are left to rank 0.
TaskOfRanks::Sharing sharing_of(const CheckOptions& options) {
  const bool own_selection = options.select.empty() || options.select == "opt" || options.select == "file";
  return options.run.empty() && !options.enumerate && !options.head && own_selection ? TaskOfRanks::Sharing::segments
                                                                                     : TaskOfRanks::Sharing::none;
}

ExitCode run_check(Session& session, CheckOptions& options) {
  Threads threads(session.threads);
  std::optional<TaskOfRanks> loaded(std::in_place, options.task, sharing_of(options), threads);
  if (loaded->part() == nullptr) return kDone;
  AttentionTask task = *loaded->task().part;
  if (options.head && task.next_token())
    throw InputError(fmt::format("{} cannot be used with a next-token task: it has one head", kHeadOption));
  std::optional<StoredRun> stored;
  if (options.run.empty() && !options.norms.empty()) throw InputError("--norm needs --run, the run to judge");
  if (!options.run.empty()) {
    if (!options.select.empty())
      throw InputError("--select cannot be used with --run: the run determines the selection");
    if (holds_stack(options.run)) {
      refuse_given(options.not_for_stacks, "cannot be used with a stack: its heads are judged beside their SVMs");
      options.stack.judged.time_limit = options.settings.time_limit;
      return check_stack(session, task, options.run, options.stack, threads);
    }
  }
  refuse_given(options.for_stacks, "needs --run, a stack whose heads are to be judged");
  if (!options.run.empty()) {
    stored = load_run(options.run, threads);
    for (const std::string& name : options.norms) {
      with_place("--norm", [&] { options.settings.add(Norm::parse(name)); });
    }
    with_place(options.run, [&] {
      require_run_of(task, *stored);
      if (options.head || (stored->heads > 1 && options.enumerate))
        stored = head_of(*stored, options.head, kHeadOption);
      if (stored->heads == 1 && stored->v.size() > 0) task = with_head(task, stored->v);
    });
    if (stored->heads > 1) return run_heads_check(session, task, *stored, options, threads);
  } else if (options.head) {
    task = with_place(options.task, [&] { return with_head(task, *options.head, kHeadOption); });
  }
  if (task.next_token()) return run_next_token_check(session, task, stored, options, threads);
  Session::watch_interrupts();
  const Stopwatch watch;
  std::optional<ChosenSelection> chosen;
  if (!stored) chosen = choose_selection(task, options.task, options.select);
  ProgressLine line(session);
  options.settings.progress = watch_solves(line, watch);
  std::optional<Check> shared;
  if (loaded->shared()) {
    shared = with_place(options.task, [&] {
      return check_shared(task, chosen->selection, options.settings, threads, loaded->rows(),
                          [](const std::string& own, const auto& use) { ranks().collect(own, use); });
    });
    if (!ranks().first()) return kDone;
    if (!shared) {
      loaded.reset();
      task = load_task(options.task, threads);
      chosen = choose_selection(task, options.task, options.select);
    }
  }
  const Check check = shared ? std::move(*shared) : with_place(options.task, [&] {
    return stored ? check_run(task, trace_of(*stored), options.settings, threads)
                  : check_selection(task, chosen->selection, options.settings, threads);
  });
  std::optional<LocalOptima> optima;
  if (options.enumerate) {
    optima = with_place(options.task, [&] {
      EnumerationSettings& settings = options.enumeration;
      if (options.settings.time_limit > 0) {  // what the check has left; 0 would mean no limit
        settings.time_limit = std::max(options.settings.time_limit - watch.seconds(), 1e-9);
      }
      settings.progress = [&](const EnumerationProgress& now) {
        line.show(static_cast<double>(now.done) / static_cast<double>(now.selections),
                  [&] { return fmt::format("{} of {} selections", now.done, now.selections); });
        return Session::interrupted();
      };
      return enumerate_local_optima(task, settings, threads);
    });
  }
  const double seconds = watch.seconds();
  const bool stopped = !check.complete || (optima && !optima->complete);
  line.clear();
  if (session.json) {
    Session::print_json("check", seconds, to_json(check, stored, optima, options, stopped, threads.count()));
  } else {
    print_table(check, stored, optima, options);
  }
  return end_check(session, unsolved(check), stopped);
}

}  // namespace

void add_check(CLI::App& program, Session& session) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* verb = session.add_verb(program, "check", "Check a selection or a run against the theory",
                                    R"(Examples:
  attsvm check task.npz                      the file's selection, or the optimal tokens
  attsvm train task.npz --record every:100 -o run.npz
  attsvm check task.npz --run run.npz        what training selected, and whether W tends to that SVM
  attsvm check task.npz --run heads.npz      every head of a run of many, against the SVM of its own selection
  attsvm check task.npz --enumerate          every locally optimal selection of a small task
global: every query selects its best token. local: every selected token scores above its support tokens.
neither: the output says why. infeasible: a certificate proves that no W separates the selected tokens
(or that any such W is too large for double precision: attsvm solve prints the bound on its norm).
rho: W's smallest margin per norm, as a share of the largest that any W has; * marks the norm that theory names for
the optimizer of the run.
Exit codes: 0 done, 4 stopped by the time limit or an SVM stalled, 130 interrupted; what is known by then is printed)",
                                    [&session, options] { return run_check(session, *options); });
  verb->add_option("TASK", options->task, "Task file, or folder of shards")->required();
  verb->add_option("--run", options->run, "Run of attsvm train, or of attsvm stack, to check");
  add_head(verb, options->head, "Of a run or a task of many heads, the one to check, from 0 (default: all of the run)");
  verb->add_option("--norm", options->norms, "Further norms in which to judge the run, such as lp:3,schatten:4")
      ->type_name(kNormForms)
      ->delimiter(',')
      ->allow_extra_args(false);
  verb->add_option("--select", options->select, kSelectHelp);
  verb->add_option("--threshold", options->settings.threshold,
                   "With a nonlinear head, tokens with at least this much attention are kept (default: 1e-3)")
      ->check(CLI::Range(1e-300, 1.0));
  verb->add_flag("--enumerate", options->enumerate, "List every locally optimal selection");
  verb->add_option("--limit", options->enumeration.limit,
                   "Largest number of selections to enumerate (default: 1000000)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--time-limit", options->settings.time_limit, "Seconds after which to stop with what is known")
      ->check(positive_number());
  options->for_stacks = add_askers(verb, options->stack.judged);
  options->for_stacks.push_back(
      verb->add_option("--seed", options->stack.seed, "Seed of the null (default: that of the stack)"));
  for (const char* name : {kHeadOption, "--norm", "--threshold", "--enumerate", "--limit"})
    options->not_for_stacks.push_back(verb->get_option(name));
}

}  // namespace attsvm::internal
