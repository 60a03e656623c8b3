#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/refuse.h"
#include "io/output.h"
#include "options.h"
#include "stack_answer.h"

namespace attsvm::internal {
namespace {

struct ReportOptions {
  std::string task, out = "report.html", coordinates;
  std::vector<std::string> runs, solutions;
  std::optional<Index> head{};
  double threshold = CheckSettings{}.threshold;
};

std::string command_line(const ReportOptions& options) {
  std::vector<std::string> words{"attsvm", "report", options.task};
  const auto add = [&](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  for (const std::string& run : options.runs) add("--run", run);
  for (const std::string& solution : options.solutions) add("--solution", solution);
  if (options.head) add(kHeadOption, std::to_string(*options.head));
  if (!options.coordinates.empty()) add("--coordinates", options.coordinates);
  if (options.threshold != CheckSettings{}.threshold) add("--threshold", fmt::format("{}", options.threshold));
  add("-o", options.out);
  return shell_line(words);
}

/// Whether the solve reached neither an optimum nor a certificate.
bool is_open(const Json& solution) { return solution.at("status") == "limit" || solution.at("status") == "stalled"; }

/// Null where there is none to give: without a head, and for next-token tasks.
Json verdict_of(const Json& data) {
  return data.contains("check") && !data.at("check").is_null() ? data.at("check").at("verdict") : Json(nullptr);
}

/// Whether a solve for this page did.
bool any_open(const Json& data) {
  const Json& solutions = data.at("solutions");
  return std::any_of(solutions.begin(), solutions.end(),
                     [](const Json& solution) { return solution.at("file").is_null() && is_open(solution); });
}

void print_table(const Json& data, const ReportOptions& options) {
  const auto line = [](const std::string& label, const std::string& text) {
    fmt::print("  {:<12} {}\n", label, printable(text));
  };
  const Json& task = data.at("task");
  line("task", fmt::format("{}: {}, {}", options.task, counted(task.at("tokens").get<Index>(), "token"),
                           counted(task.at("queries").get<Index>(), "query")));
  for (const Json& solution : data.at("solutions")) {
    const std::string name = solution.at("norm_words").get<std::string>();
    if (!solution.at("valid").get<bool>()) {
      line("solution", fmt::format("{}: not valid: {}", name, solution.at("reason").get<std::string>()));
    } else if (solution.at("status") == "infeasible") {
      const auto rows = solution.at("conflict").at("total").get<Index>();
      line("solution", fmt::format("{}: infeasible, {}", name,
                                   rows == 1 ? "one row cannot be met" : fmt::format("{} rows conflict", rows)));
    } else {
      const Json& objective = solution.at("objective");
      const Json& gap = solution.at("gap");
      std::string text =
          objective.is_null() ? name + ": no W yet" : fmt::format("{} {:.12g}", name, objective.get<double>());
      if (is_open(solution)) text += ", " + solution.at("status").get<std::string>();
      if (is_open(solution) && !gap.is_null()) text += fmt::format(" with a gap of {:.2g}", gap.get<double>());
      line("solution", text);
    }
  }
  for (const Json& run : data.at("runs")) {
    line("run", fmt::format("{}: {}", run.at("file").get<std::string>(),
                            counted(run.at("records").get<Index>(), "recorded point")));
  }
  if (const Json verdict = verdict_of(data); !verdict.is_null()) line("verdict", verdict.get<std::string>());
}

/// The main facts of the page, for scripts.
Json to_json(const Json& data, const ReportOptions& options, std::uintmax_t bytes, int threads) {
  Json solutions = Json::array();
  for (const Json& solution : data.at("solutions")) {
    Json one;
    for (const char* name : {"file", "norm", "problem", "status", "valid", "objective", "dual_objective", "gap"})
      one[name] = solution.at(name);
    solutions.push_back(std::move(one));
  }
  return {{"file", options.out},
          {"bytes", bytes},
          {"task", options.task},
          {"runs", options.runs},
          {"solutions", std::move(solutions)},
          {"verdict", verdict_of(data)},
          {"threshold", options.threshold},
          {"coordinates", data.contains("settings") ? data.at("settings").at("coordinates") : Json::array()},
          {"seed", nullptr},
          {"threads", threads}};
}

/// Writes the page, and returns how large it is.
std::uintmax_t write_page(const Session& session, const ReportOptions& options, const std::string& text) {
  write_report(options.out, text, session.force);
  const std::uintmax_t bytes = std::filesystem::file_size(options.out);
  if (!session.json)
    fmt::print("{}: a page to open in a browser, {:.0f} kB\n", printable(options.out),
               static_cast<double>(bytes) / 1000);
  return bytes;
}

/// The page of a file of attsvm.torch.monitor.
ExitCode run_monitor_report(const Session& session, const ReportOptions& options) {
  if (!options.runs.empty() || !options.solutions.empty() || !options.coordinates.empty() || options.head)
    refuse("{}: is a file of attsvm.torch.monitor; --run, --head, --solution and --coordinates go with a task",
           options.task);
  Threads threads(session.threads);
  const Stopwatch watch;
  const std::string text = monitor_data(options.task, command_line(options), threads);
  const double seconds = watch.seconds();
  const std::uintmax_t bytes = write_page(session, options, text);
  const Json data = Json::parse(text);
  if (session.json) {
    Session::print_json("report", seconds,
                        {{"file", options.out},
                         {"bytes", bytes},
                         {"monitor", options.task},
                         {"measurements", data.at("step").size()},
                         {"layers", data.at("layers")},
                         {"heads", data.at("heads")},
                         {"warnings", data.at("warnings")},
                         {"seed", nullptr},
                         {"threads", threads.count()}});
    return kDone;
  }
  fmt::print("  {:<12} {}: {} of {}, up to {} each\n", "monitor", printable(options.task),
             counted(static_cast<Index>(data.at("step").size()), "measurement"),
             counted(static_cast<Index>(data.at("layers").size()), "layer"),
             counted(data.at("heads").get<Index>(), "head"));
  for (const Json& words : data.at("warnings"))
    fmt::print("  {:<12} {}\n", "warning", printable(words.get<std::string>()));
  return kDone;
}

/// What is said about the page of a run of many heads.
ExitCode end_heads_report(const Session& session, const Json& data, const ReportOptions& options, std::uintmax_t bytes,
                          double seconds, int threads) {
  const Json& runs = data.at("runs");
  const Json& full = data.at("reports");
  if (session.json) {
    Json verdicts = Json::array();
    for (const Json& run : runs) verdicts.push_back(run.at("verdict"));
    Session::print_json("report", seconds,
                        {{"file", options.out},
                         {"bytes", bytes},
                         {"task", options.task},
                         {"runs", options.runs},
                         {"heads", runs.size()},
                         {"heads_in_full", full.size()},
                         {"verdicts", std::move(verdicts)},
                         {"distinct_selections", data.at("distinct_selections")},
                         {"tokens_per_query", data.at("tokens_per_query")},
                         {"seed", nullptr},
                         {"threads", threads}});
  } else {
    fmt::print("  {:<12} {}: {} heads, {} of them in full\n", "run", printable(options.runs.front()), runs.size(),
               full.size());
  }
  return std::any_of(full.begin(), full.end(), any_open) ? kLimit : kDone;
}

/// The page of a stack.
ExitCode run_stack_report(Session& session, const ReportOptions& options, const std::string& file) {
  if (options.runs.size() > 1 || !options.solutions.empty() || !options.coordinates.empty() || options.head)
    refuse("{}: is a stack; other runs, {}, --solution and --coordinates are not shown beside it", file, kHeadOption);
  Threads threads(session.threads);
  const AttentionTask task = load_task(options.task, threads);
  ReportStack shown{file, load_stack(file, threads)};
  shown.judged.seed = shown.stack.seed.value_or(0);
  ProgressLine line(session);
  shown.judged.progress = watch_judging(line);
  Session::watch_interrupts();
  const Stopwatch watch;
  const std::string text =
      stack_report_data(task, shown, {.title = options.task, .command = command_line(options)}, threads);
  const double seconds = watch.seconds();
  line.clear();
  const std::uintmax_t bytes = write_page(session, options, text);
  const Json data = Json::parse(text);
  const Json& judged = data.at("judged");
  if (session.json) {
    Session::print_json("report", seconds,
                        {{"file", options.out},
                         {"bytes", bytes},
                         {"task", options.task},
                         {"runs", options.runs},
                         {"layers", data.at("layers")},
                         {"heads", data.at("heads")},
                         {"null_draws", data.at("null_draws")},
                         {"complete", data.at("complete")},
                         {"seed", data.at("seed")},
                         {"threads", threads.count()}});
  } else {
    fmt::print("  {:<12} {}: {} of {}\n", "stack", printable(file), counted(data.at("layers").get<Index>(), "layer"),
               counted(data.at("heads").get<Index>(), "head"));
  }
  if (!data.at("complete").get<bool>()) session.warn("stopped before all heads were judged");
  if (Session::interrupted()) return kInterrupted;
  return std::any_of(judged.begin(), judged.end(), is_open) ? kLimit : kDone;
}

ExitCode run_report(Session& session, const ReportOptions& options) {
  if (const std::string problem = page_problem(); !problem.empty()) throw InputError(problem);
  require_writable(options.out, session.force);
  require_other_file(options.out, options.task);
  for (const std::string& run : options.runs) require_other_file(options.out, run);
  for (const std::string& solution : options.solutions) require_other_file(options.out, solution);
  if (is_monitor_file(options.task)) return run_monitor_report(session, options);
  const auto stack = std::find_if(options.runs.begin(), options.runs.end(), holds_stack);
  if (stack != options.runs.end()) return run_stack_report(session, options, *stack);
  Threads threads(session.threads);
  const AttentionTask task = load_task(options.task, threads);
  ReportRequest request{.title = options.task,
                        .command = command_line(options),
                        .token_names = load_token_names(options.task, task, threads),
                        .threshold = options.threshold};
  bool any_many = false;
  for (const std::string& file : options.runs) {
    StoredRun run = load_run(file, threads);
    const bool many = run.heads > 1;
    any_many = any_many || many;
    const bool alone = options.runs.size() == 1 && options.solutions.empty();
    if (many && (options.head || !alone)) {
      StoredRun one = with_place(file, [&] { return head_of(run, options.head, kHeadOption); });
      request.runs.push_back({fmt::format("{}, head {}", file, *options.head), std::move(one)});
    } else {
      request.runs.push_back({file, std::move(run)});
    }
  }
  if (options.head && !any_many) refuse("{} {}: there is no run of many heads", kHeadOption, *options.head);
  for (const std::string& file : options.solutions) request.solutions.push_back({file, load_solution(file, threads)});
  if (!options.coordinates.empty()) {
    request.coordinates =
        parse_list<Index>(options.coordinates, "--coordinates", "key coordinates separated by commas, such as 0,3");
  }
  ProgressLine line(session);
  request.progress = [&](const ReportProgress& now) { line.show(now.share, [&] { return now.part; }); };
  const Stopwatch watch;
  const std::string text = with_place(options.task, [&] { return report_data(task, request, threads); });
  const double seconds = watch.seconds();
  line.clear();
  const std::uintmax_t bytes = write_page(session, options, text);
  const Json data = Json::parse(text);
  if (data.at("kind") == "heads") return end_heads_report(session, data, options, bytes, seconds, threads.count());
  if (session.json) {
    Session::print_json("report", seconds, to_json(data, options, bytes, threads.count()));
  } else {
    print_table(data, options);
  }
  return any_open(data) ? kLimit : kDone;
}

}  // namespace

void add_report(CLI::App& program, Session& session) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* verb = session.add_verb(program, "report", "Write a page that shows a task, its SVMs and runs", R"(Examples:
  attsvm report task.npz -o report.html                      the task and both of its SVMs
  attsvm train task.npz --record every:20 -o run.npz
  attsvm report task.npz --run run.npz -o report.html        also the training run, step by step
  attsvm report task.npz --run gd.npz --run adam.npz -o report.html   runs against each other
  attsvm report task.npz --solution mine.npz -o report.html  an answer of your own, verified
  attsvm report task.npz --run heads.npz -o report.html      a run of many heads: all of them, and each in full
  attsvm report task.npz --run stack.npz -o report.html      layers of heads, each beside its SVM and its null
  attsvm report corpus.npz --run run.npz -o report.html      next tokens: the priority graph of every last token
  attsvm report monitor.npz -o monitor.html                  the heads of a model, as attsvm.torch.monitor saw them
The page is one file that works from disk. Its slider moves over the recorded steps. If the task file has an array
x_token_names, the page shows these names for the tokens.
Exit codes: 0 done, 4 the page is written, but an SVM on it stalled, 130 the judging of a stack was interrupted, and the
page has what was judged so far)",
                                    [&session, options] { return run_report(session, *options); });
  verb->add_option("TASK", options->task, "Task file, or a file of attsvm.torch.monitor")->required();
  verb->add_option("--run", options->runs,
                   "Run of attsvm train, or one of attsvm stack, to show; can be given several times")
      ->allow_extra_args(false);
  add_head(verb, options->head, "Head to show of runs of many heads, from 0 (default: all of a run)");
  verb->add_option("--solution", options->solutions, "Solution file to show; can be given several times");
  verb->add_option("--coordinates", options->coordinates,
                   "Key coordinates to offer as axes of the plane, such as 0,3,5");
  verb->add_option("--threshold", options->threshold,
                   "With a nonlinear head, tokens with at least this much attention are kept (default: 1e-3)")
      ->check(CLI::Range(1e-300, 1.0));
  Session::add_output(verb, options->out, session.force)->required();
}

}  // namespace attsvm::internal
