#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "answer_of_ranks.h"
#include "base/refuse.h"
#include "graph_answer.h"
#include "io/output.h"
#include "margin/shared_solve.h"
#include "options.h"
#include "ranks/ranks.h"
#include "report/answer.h"
#include "task_of_ranks.h"
#include "verify/progress.h"

namespace attsvm::internal {
namespace {

struct SolveOptions {
  std::string task, out, select, problem = "att", norm = "fro", warm_start;
  std::optional<Index> head;
  std::string relax_list, soft_list;
  std::vector<Index> relax;
  SolveSettings settings;
};

/// The rows of a next-token task are those of its graphs; other tasks have none.
std::vector<PriorityGraph> graphs_of(const AttentionTask& task, const SolveOptions& options) {
  if (!task.next_token()) return {};
  for (const auto& [name, given] : {std::pair{"--select", !options.select.empty()},
                                    {"--head", options.head.has_value()},
                                    {"--relax", !options.relax.empty()},
                                    {"--soft", !options.settings.soft.empty()},
                                    {"--problem v", options.problem == "v"}}) {
    if (given) throw InputError(fmt::format("{} cannot be used with a next-token task: its graphs are its rows", name));
  }
  return priority_graphs(task);
}

MarginProblem make_problem(const AttentionTask& task, Selection selection, const SolveOptions& options) {
  if (options.problem == "v") {
    if (!options.relax.empty()) throw InputError("--relax cannot be used with --problem v");
    return MarginProblem::value(task, std::move(selection));
  }
  return MarginProblem::attention(task, std::move(selection), options.relax);
}

/// What is to be solved: rows of a whole task, or of this rank's part.
struct Question {
  std::vector<PriorityGraph> graphs;
  ChosenSelection chosen;
  MarginProblem problem;
};

Question question_of(const AttentionTask& task, const SolveOptions& options) {
  std::vector<PriorityGraph> graphs = graphs_of(task, options);
  ChosenSelection chosen =
      task.next_token() ? ChosenSelection{} : choose_selection(task, options.task, options.select, options.head);
  MarginProblem problem = with_place(options.task, [&] {
    return task.next_token() ? MarginProblem::graph(task, graphs) : make_problem(task, chosen.selection, options);
  });
  return {std::move(graphs), std::move(chosen), std::move(problem)};
}

/// Whether ranks can share the task: what names queries or rows of the whole task is left to rank 0.
TaskOfRanks::Sharing sharing_of(const SolveOptions& options) {
  const bool plain = options.problem != "v" && options.relax.empty() && options.settings.soft.empty() &&
                     !options.head && options.warm_start.empty();
  const bool own_selection = options.select.empty() || options.select == "opt" || options.select == "file";
  return plain && own_selection ? TaskOfRanks::Sharing::segments : TaskOfRanks::Sharing::none;
}

Json conflict_json(const MarginProblem& problem, const Eigen::VectorXd& dual) {
  std::vector<std::pair<double, Json>> rows;
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (dual(k) == 0) continue;
      rows.emplace_back(dual(k), Json{{"row", k},
                                      {"query", group.query},
                                      {"keep", problem.keep_token(group)},
                                      {"drop", problem.drop_token(group, k)},
                                      {"equal", problem.equal(k)},
                                      {"weight", dual(k)}});
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  Json list = Json::array();
  for (auto& [weight, row] : rows) list.push_back(std::move(row));
  return list;
}

std::string rank_words(const MarginSolution& solution) {
  if (!solution.norm.is_nuclear()) return fmt::format("{}", numerical_rank(solution.W));
  const RankCertificate& proof = solution.rank;
  if (!proof.certified) return fmt::format("at most {}, equality is not proven: {}", proof.rank, proof.words);
  return fmt::format("{}, certified: in every optimum the other singular values sum to at most {:.2g}", proof.rank,
                     proof.outside_mass);
}

/// Queries whose rows the soft margin lets W miss.
Index missed_queries(const MarginSolution& solution) { return (solution.xi.array() > kSupportTolerance).count(); }

std::string words_of(const Norm& norm) {
  if (norm.is_frobenius()) return "Frobenius norm";
  if (norm == Norm::largest()) return "largest absolute entry";
  if (norm == Norm::l1()) return "sum of absolute entries";
  if (norm == Norm::spectral()) return "spectral norm";
  if (norm.is_nuclear()) return "nuclear norm";
  return fmt::format("{} norm of power {}", norm.is_entrywise() ? "entrywise" : "Schatten", norm.power);
}

Json to_json(const Question& question, const MarginSolution& solution, const StoredSolution& answer,
             const std::string& remark, const SolveOptions& options, int threads) {
  const MarginProblem& problem = question.problem;
  const bool infeasible = solution.status == MarginStatus::infeasible;
  Json fields{{"status", answer.status}, {"norm", answer.norm}, {"problem", answer.problem}};
  fields.update(numbers_json(answer, solution.gap, solution.violation));
  fields["penalty"] = penalty_json(answer);
  if (answer.is_soft()) {
    fields["size"] = solution.W.stableNorm();
    fields["xi_sum"] = solution.xi.sum();
    fields["missed"] = missed_queries(solution);
  }
  fields["unique"] = solution.unique ? Json(*solution.unique) : Json(nullptr);
  fields.update({{"iterations", solution.iterations},
                 {"method", solution.method},
                 {"warm_started", solution.warm_started},
                 {"remark", remark},
                 {"ties", ties_json(question.chosen.ties)},
                 {"tolerance", options.settings.tolerance},
                 {"time_limit", options.settings.time_limit},
                 {"relax", options.relax},
                 {"select", options.select.empty() ? Json(nullptr) : Json(options.select)},
                 {"head", options.head ? Json(*options.head) : Json(nullptr)},
                 {"warm_start", options.warm_start.empty() ? Json(nullptr) : Json(options.warm_start)},
                 {"seed", nullptr},
                 {"threads", threads},
                 {"file", options.out}});
  if (problem.task().next_token()) fields.update(graphs_json(problem.task(), question.graphs, false));
  if (solution.norm.is_nuclear() && !infeasible) {
    fields["rank_certified"] = solution.rank.certified;
    fields["next_singular_value"] = solution.rank.next_singular_value;
    fields["outside_mass"] = solution.rank.outside_mass;
    fields["rank_words"] = solution.rank.words;
  }
  if (infeasible) {
    fields["residual"] = solution.residual;
    fields["norm_bound"] = 1 / solution.residual;
    fields["conflict"] = conflict_json(problem, solution.dual);
    fields["words"] = describe_conflict(problem, solution.dual, 20);
  }
  return fields;
}

std::string why_stopped(const MarginSolution& solution) {
  if (Session::interrupted()) return "by Ctrl-C";
  if (solution.status == MarginStatus::limit) return "by the time limit, which is checked between iterations";
  return "by the solver, which could not reach the tolerance; the bound and any gap shown are proven";
}

void print_table(const MarginProblem& problem, const MarginSolution& solution, std::size_t rows,
                 const std::string& rank, const std::string& remark, const SolveOptions& options, double seconds) {
  const auto line = [](const char* label, const std::string& text) { fmt::print("  {:<12} {}\n", label, text); };
  fmt::print("{}: {}\n", printable(options.out), name_of(solution.status));
  line("rows", fmt::format("{} in {} x {} unknowns", rows, problem.d(), problem.dz()));
  if (solution.status == MarginStatus::infeasible) {
    line("proof", fmt::format("these rows cannot hold together (no W with norm below {:.3g} meets them):",
                              1 / solution.residual));
    for (const std::string& words : describe_conflict(problem, solution.dual, 10)) line("", words);
  } else if (std::isnan(solution.gap)) {
    line("objective", fmt::format("no feasible W yet; every one has norm at least {:.12g}", solution.dual_objective));
  } else if (!solution.penalty.empty()) {
    line("objective", fmt::format("{:.12g} (half the squared norm, and penalties), proven at least {:.12g}: gap {:.2g}",
                                  solution.objective, solution.dual_objective, solution.gap));
    line("norm", fmt::format("{:.12g} (Frobenius norm)", solution.W.stableNorm()));
    line("slack", fmt::format("{} of {} queries stay behind the margin, by {:.6g} at most", missed_queries(solution),
                              solution.xi.size(), solution.xi.maxCoeff()));
    line("violation", fmt::format("{:.2g}", solution.violation));
    line("support", counted(solution.support, "row") + " met with equality, slack included");
    line("rank", rank);
  } else {
    line("objective", fmt::format("{:.12g} ({}), proven at least {:.12g}: gap {:.2g}", solution.objective,
                                  words_of(solution.norm), solution.dual_objective, solution.gap));
    line("violation", fmt::format("{:.2g}", solution.violation));
    line("support", counted(solution.support, "row") + " met with equality");
    line("rank", rank);
  }
  if (solution.status == MarginStatus::limit || solution.status == MarginStatus::stalled)
    line("stopped", why_stopped(solution));
  if (!remark.empty()) line("not proven", remark);
  line("work", fmt::format("{}, {:.3g} s, {}{}", counted(solution.iterations, "iteration"), seconds, solution.method,
                           solution.warm_started        ? ", warm started"
                           : options.warm_start.empty() ? ""
                                                        : ", not from the warm start"));
}

void warn_of_ties(const Session& session, const std::vector<Tie>& ties, const std::string& file) {
  constexpr std::size_t kShown = 10;
  for (std::size_t k = 0; k < std::min(kShown, ties.size()); ++k) {
    session.warn(fmt::format("{}: query {}: tokens {} tie; token {} is selected", file, ties[k].query,
                             fmt::join(ties[k].tokens, " "), ties[k].tokens.front()));
  }
  if (ties.size() > kShown) session.warn(fmt::format("{}: {} queries tie in all", file, ties.size()));
}

ExitCode run_solve(Session& session, SolveOptions& options) {
  options.settings.norm = with_place("--norm", [&] { return Norm::parse(options.norm); });
  if (!options.relax_list.empty())
    options.relax =
        parse_list<Index>(options.relax_list, "--relax", "query numbers separated by commas, such as 0,2,5");
  if (!options.soft_list.empty())
    options.settings.soft =
        parse_list<double>(options.soft_list, "--soft", "penalties separated by commas, such as 1,1,0.5");
  if (ranks().first()) {
    require_writable(options.out, session.force);
    for (const std::string* input : {&options.task, &options.select, &options.warm_start})
      require_other_file(options.out, *input);
  }
  Threads threads(session.threads);
  std::optional<TaskOfRanks> loaded(std::in_place, options.task, sharing_of(options), threads);
  if (loaded->part() == nullptr) return kDone;
  Question question = question_of(*loaded->task().part, options);
  const MarginProblem& problem = question.problem;
  if (loaded->shared()) gather(question.chosen.ties, loaded->task());
  MarginSolution warm;
  if (!options.warm_start.empty()) {
    const StoredSolution before = load_solution(options.warm_start, threads);
    warm = with_place(options.warm_start, [&] { return warm_start_from(before); });
  }
  warn_of_ties(session, question.chosen.ties, options.task);
  ProgressLine line(session);
  if (!options.warm_start.empty() && warm.dual.size() != problem.rows()) {
    session.warn(fmt::format("{}: not used as a warm start: it has {} rows, the problem has {}", options.warm_start,
                             warm.dual.size(), problem.rows()));
  }
  options.settings.progress = [&](const SolveProgress& progress) {
    const double gap = 1 - progress.dual_objective / progress.objective;
    const bool bounded = progress.dual_objective > 0 && std::isfinite(progress.objective) && gap > 0;
    // As many digits of the gap as are there, of those asked for.
    const double share = bounded ? std::log(gap) / std::log(options.settings.tolerance) : std::nan("");
    line.show(std::clamp(share, 0.0, 1.0), [&] {
      return fmt::format("{:.1f} s, iteration {}, {}", progress.seconds, progress.iteration,
                         progress.dual_objective > 0 && std::isfinite(progress.objective)
                             ? fmt::format("gap {:.1e}", gap)
                             : "no separator yet");
    });
    return Session::interrupted();
  };
  Session::watch_interrupts();
  const Stopwatch watch;
  std::optional<MarginSolution> found;
  if (loaded->shared()) {
    found = solve_shared(problem, loaded->rows(), options.settings, threads);
    if (!found && ranks().first()) {
      loaded.reset();  // before the whole task is read
      question = question_of(load_task(options.task, threads), options);
    }
  }
  if (!found && ranks().first()) {
    SolveSettings left = options.settings;
    if (left.time_limit > 0) left.time_limit = std::max(left.time_limit - watch.seconds(), 1e-9);
    found = solve(problem, left, threads, options.warm_start.empty() ? nullptr : &warm);
  }
  if (!found) return kDone;
  const MarginSolution& solution = *found;
  const double seconds = watch.seconds();
  line.clear();
  StoredSolution answer = stored(problem, solution, options.settings.tolerance);
  if (loaded && loaded->shared()) gather(answer, loaded->task());
  if (!ranks().first()) return kDone;
  answer.norm = options.norm;  // as the user wrote it: lp:2 is another name of fro
  // What takes memory comes before the file, so that there is none where it fails.
  const bool whole = !loaded || !loaded->shared();  // ranks that share a task have no rows in one place to look at
  const std::string remark = whole ? remark_on(problem.task(), answer) : "";
  const Json fields =
      session.json ? to_json(question, solution, answer, remark, options, threads.count()) : Json::object();
  const bool ranked = !session.json && solution.status != MarginStatus::infeasible;
  const std::string rank = ranked ? rank_words(solution) : "";
  save_solution(options.out, answer, session.force);
  if (session.json) {
    Session::print_json("solve", seconds, fields);
  } else {
    print_table(problem, solution, answer.rhs.size(), rank, remark, options, seconds);
    if (problem.task().next_token()) print_graphs(problem.task(), question.graphs);
  }
  switch (solution.status) {
    case MarginStatus::optimal:
      return kDone;
    case MarginStatus::infeasible:
      return kInfeasible;
    case MarginStatus::limit:
      return Session::interrupted() ? kInterrupted : kLimit;
    case MarginStatus::stalled:
      return kLimit;
  }
  return kInternalError;
}

}  // namespace

void add_solve(CLI::App& program, Session& session) {
  auto options = std::make_shared<SolveOptions>();
  CLI::App* verb = session.add_verb(program, "solve",
                                    "Find the smallest W that keeps the selected tokens, with a proof", R"(Examples:
  attsvm generate random --seed 1 -o task.npz
  attsvm solve task.npz -o solution.npz                  separate the optimal tokens from the others
  attsvm solve task.npz --norm nuc -o nuclear.npz        what W = K Q' tends to with vanishing regularization
  attsvm solve task.npz --relax 0,2 -o relaxed.npz       rows of queries 0 and 2 need only be >= 0
  attsvm solve task.npz --soft 10 -o soft.npz            a query may miss its margin by xi, at the price 10 xi
  attsvm solve task.npz --problem v -o v.npz             separate the labels by the selected values
  attsvm verify task.npz solution.npz                    check it independently
The file holds W (with --norm nuc also K and Q), and the multiplier and slack of every row (docs/formats.md).
Exit codes: 0 optimal, 3 infeasible with a certificate, 4 stopped at a limit or stalled, 130 interrupted)",
                                    [&session, options] { return run_solve(session, *options); });
  const CLI::Validator positive = positive_number();
  verb->add_option("TASK", options->task, "Task file, or folder of shards")->required();
  Session::add_output(verb, options->out, session.force)->required();
  verb->add_option(
          "--norm", options->norm,
          "Norm of W to minimise: fro, nuc (nuclear), spec (spectral), max (largest absolute entry), l1 (sum of "
          "absolute entries), lp:P or schatten:P with P from 1 to inf, the norms of power P of the entries and "
          "of the singular values (default: fro)")
      ->type_name(kNormForms);
  verb->add_option("--select", options->select, kSelectHelp);
  add_head(verb, options->head, "Of a run or a task of many heads, the one whose selection to take, from 0");
  verb->add_option("--relax", options->relax_list,
                   "Queries whose rows need only be >= 0 instead of >= 1, such as 0,2,5");
  verb->add_option("--soft", options->soft_list,
                   "Penalty C > 0 of a soft margin, or one per query, such as 1,1,0.5: minimises half the squared "
                   "Frobenius norm plus C xi of every query, whose rows then need only be >= 1 - xi")
      ->check(CLI::Validator([](const std::string& text) { return text.empty() ? "no penalty is given" : ""; }, ""));
  verb->add_option("--problem", options->problem,
                   "att: separate kept tokens from the others; v: separate labels by the kept values (default: att)")
      ->check(CLI::IsMember({"att", "v"}));
  verb->add_option("--tolerance", options->settings.tolerance,
                   "Relative gap to reach (default: 1e-8; problems of up to 1,500 rows are solved to rounding)")
      ->check(positive);
  verb->add_option("--time-limit", options->settings.time_limit,
                   "Seconds after which to stop with the best answer so far")
      ->check(positive);
  verb->add_option("--warm-start", options->warm_start, "Solution file to start from");
}

}  // namespace attsvm::internal
