#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>

#include "base/refuse.h"
#include "io/output.h"
#include "options.h"

namespace attsvm::internal {
namespace {

struct DemoOptions {
  std::string out = "demo";
  std::uint64_t seed = 1;
};

/// A claim (attsvm claims list) and whether it holds on the demo's task.
struct DemoFinding {
  std::string_view claim;
  bool held;
  std::string evidence;
};

/// A run, the tokens that it selects, and both SVMs of these.
struct Story {
  std::string settings;  ///< in words
  TrainedRun run;
  Check check;
};

constexpr Index kSteps = 20000;
constexpr double kTrainedW = 0.2, kTrainedKQ = 0.5, kTested = 0.7;  // shares of the work done by then, roughly
constexpr std::array<Index, 5> kTold{0, 20, 200, 2000, kSteps};     // steps quoted in the findings

/// The steps recorded for the page: the quoted ones, and others at growing distances.
std::vector<Index> recorded_steps() {
  std::vector<Index> steps(kTold.begin(), kTold.end());
  for (Index step = 1; step < kSteps; step += step / 8 + 1) steps.push_back(step);
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

/// The entries at the quoted steps of a list that has one entry per record.
std::vector<double> told(const TrainedRun& run, const std::vector<double>& list) {
  std::vector<double> found;
  for (std::size_t r = 0; r < run.records.size(); ++r) {
    if (std::find(kTold.begin(), kTold.end(), run.records[r].step) != kTold.end()) found.push_back(list[r]);
  }
  return found;
}

/// Told how much of a part of the demo is done.
using Told = std::function<void(double)>;

Story tell(const AttentionTask& task, Parametrization param, std::uint64_t seed, const Told& done, Threads& threads) {
  const TrainSettings settings{.param = param,
                               .steps = kSteps,
                               .seed = seed,
                               .record = {.at = recorded_steps()},
                               .progress = [&](const TrainProgress& now) {
                                 done(static_cast<double>(now.step) / static_cast<double>(kSteps));
                                 return false;
                               }};
  Story story{.settings = words_of(settings), .run = train(task, settings, threads), .check = {}};
  std::vector<ConstRows> record;
  for (const Record& point : story.run.records) {
    record.emplace_back(point.W.data(), point.W.rows(), point.W.cols());
  }
  story.check = check_run(task, story.run.W, record, {.norms = {}}, threads);
  return story;
}

bool verified(const AttentionTask& task, const Selection& selection, const MarginSolution& solution) {
  const MarginProblem problem = MarginProblem::attention(task, selection);
  return verify(task, stored(problem, solution, SolveSettings{}.tolerance)).valid;
}

DemoFinding about_separability(const AttentionTask& task, const Story& W) {
  const bool proven = W.check.separable && verified(task, W.check.selection, W.check.report->solution);
  return {"separability", proven,
          fmt::format("{}; the SVM of the selected tokens has the answer |W| = {:.6g}, verified",
                      separability_condition(task).reason, W.check.report->solution.objective)};
}

DemoFinding about_divergence(const Story& W) {
  std::vector<double> all;
  bool grows = true;
  for (const Record& record : W.run.records) {
    grows = grows && (all.empty() || record.norm > all.back());
    all.push_back(record.norm);
  }
  std::vector<std::string> norms;
  for (const double norm : told(W.run, all)) norms.push_back(fmt::format("{:.4g}", norm));
  return {"divergence", grows,
          fmt::format("|W| is {} after 0, 20, 200, 2000 and {} steps; the gradient is down to 10^{:.0f}",
                      fmt::join(norms, ", "), kSteps, W.run.log_gradient / std::log(10.0))};
}

std::string distances(const std::vector<double>& correlations) {
  std::vector<std::string> texts;
  for (std::size_t r = correlations.size() - 3; r < correlations.size(); ++r) {
    texts.push_back(fmt::format("{:.2g}", 1 - correlations[r]));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

DemoFinding about_direction(const Story& W) {
  return {"direction", 1 - W.check.correlation_fro.back() <= 1e-4,
          fmt::format("training W: 1 - correlation with the Frobenius solution is {} after 200, 2000 and {} steps, and "
                      "{:.2g} with the nuclear one",
                      distances(told(W.run, W.check.correlation_fro)), kSteps, 1 - W.check.correlation_nuc.back())};
}

DemoFinding about_bias(const Story& KQ) {
  return {"kq-bias", KQ.check.correlation_nuc.back() > KQ.check.correlation_fro.back(),
          fmt::format("training (K,Q): 1 - correlation with the nuclear solution, the limit of vanishing "
                      "regularization, is {} after 200, 2000 and {} steps, and "
                      "{:.2g} with the Frobenius one",
                      distances(told(KQ.run, KQ.check.correlation_nuc)), kSteps, 1 - KQ.check.correlation_fro.back())};
}

DemoFinding about_verdict(const Story& W, const Story& KQ) {
  const SelectionReport& report = *W.check.report;
  double smallest = std::numeric_limits<double>::infinity();
  for (const SupportToken& token : report.support) smallest = std::min(smallest, token.score_gap);
  return {W.check.verdict == Verdict::global ? "global" : "local",
          W.check.verdict == Verdict::global || W.check.verdict == Verdict::local,
          fmt::format("W ends {} and (K,Q) {}; W's selected tokens score at least {:.3g} above their {} support tokens",
                      name_of(W.check.verdict), name_of(KQ.check.verdict), smallest, report.support.size())};
}

DemoFinding about_rank(const AttentionTask& task, const Story& W) {
  const Index bound = std::min({task.queries(), task.key_size(), task.query_size()});
  const Index fro = numerical_rank(W.check.report->solution.W), nuc = W.check.nuclear.value().rank.rank;
  return {"rank", std::max(fro, nuc) <= bound && verified(task, W.check.selection, W.check.nuclear.value()),
          fmt::format("at most min(n,d,dz) = {}: Frobenius solution {}, nuclear solution {}", bound, fro, nuc)};
}

DemoFinding about_path(const AttentionTask& task, std::uint64_t seed, Threads& threads) {
  const auto points = regularization_path(task, {.radii = {10, 100, 1000}, .starts = 2, .seed = seed}, threads).points;
  std::vector<double> correlations;
  double stationarity = 0;
  for (const PathPoint& point : points) {
    correlations.push_back(point.correlation);
    stationarity = std::max(stationarity, point.stationarity);
  }
  return {"path-W", 1 - correlations.back() <= 1e-3 && stationarity <= 1e-8,
          fmt::format("the best W of norm 10, 100, 1000 is {} from the SVM in 1 - correlation (stationarity {:.1g})",
                      distances(correlations), stationarity)};
}

/// A description of tokens that no W keeps, and of the conflict between them.
std::vector<std::string> infeasible_example(std::uint64_t seed, Threads& threads) {
  constexpr std::size_t kShown = 4;
  const AttentionTask task = generate({.law = Law::infeasible, .n = 2, .T = 3, .d = 4}, seed).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  const MarginSolution solution = solve(problem, {}, threads);
  if (solution.status != MarginStatus::infeasible) throw std::logic_error("the infeasible example has a solution");
  return describe_conflict(problem, solution.dual, kShown);
}

void save(const AttentionTask& task, const Story& W, const std::string& out) {
  const auto file = [&](const char* name) { return (std::filesystem::path(out) / name).string(); };
  const MarginProblem problem = MarginProblem::attention(task, W.check.selection);
  const double tolerance = SolveSettings{}.tolerance;
  save_task(file("task.npz"), task, {{"x_trained_W", Array::own(W.run.W)}}, true);
  save_solution(file("frobenius.npz"), stored(problem, W.check.report->solution, tolerance), true);
  save_solution(file("nuclear.npz"), stored(problem, W.check.nuclear.value(), tolerance), true);
}

ReportRun page_run(const Story& story, std::string name) {
  ReportRun run{.file = std::move(name), .run = {.settings = story.settings, .W = story.run.W}};
  for (const Record& record : story.run.records) {
    run.run.record_step.push_back(record.step);
    run.run.record.emplace_back(record.W.data(), record.W.rows(), record.W.cols());
    run.run.record_loss.push_back(record.loss);
    run.run.record_log_gradient.push_back(record.log_gradient);
  }
  return run;
}

/// Writes the playground beside the page. Returns its file; empty where this build has none.
std::string write_playground_page(const DemoOptions& options) {
  if (!playground_problem().empty()) return {};
  std::string file = (std::filesystem::path(options.out) / "playground.html").string();
  write_playground(file, true);
  return file;
}

/// Writes the page of both runs. Returns its file; empty where this build has no page.
std::string write_page(const AttentionTask& task, const Story& W, const Story& KQ, const DemoOptions& options,
                       bool has_playground, const Told& done, Threads& threads) {
  if (!page_problem().empty()) return {};
  std::string file = (std::filesystem::path(options.out) / "report.html").string();
  const ReportRequest request{
      .title = "A random attention task",
      .command = fmt::format("attsvm demo --seed {} --out {}", options.seed, shell_word(options.out)),
      .playground = has_playground ? fmt::format("playground.html#draw=random&n=6&T=8&d=10&seed={}", options.seed) : "",
      .runs = {page_run(W, "the demo's run of W"), page_run(KQ, "the demo's run of K and Q")},
      .progress = [&](const ReportProgress& now) { done(now.share); }};
  write_report(file, report_data(task, request, threads), true);
  return file;
}

ExitCode run_demo(Session& session, const DemoOptions& options) {
  make_folder(options.out);
  Threads threads(session.threads);
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, options.seed).task;
  ProgressLine progress(session);
  const auto part = [&progress](double from, double to, const char* words) -> Told {
    return
        [=, &progress](double share) { progress.show(from + share * (to - from), [=] { return std::string(words); }); };
  };
  const Stopwatch watch;
  const Story W = tell(task, Parametrization::W, options.seed, part(0, kTrainedW, "training W"), threads);
  const Story KQ =
      tell(task, Parametrization::KQ, options.seed, part(kTrainedW, kTrainedKQ, "training K and Q"), threads);
  part(kTrainedKQ, kTested, "testing the theory")(0);
  const std::vector<DemoFinding> findings{about_separability(task, W),
                                          about_divergence(W),
                                          about_direction(W),
                                          about_bias(KQ),
                                          about_verdict(W, KQ),
                                          about_rank(task, W),
                                          about_path(task, options.seed, threads)};
  const std::vector<std::string> conflict = infeasible_example(options.seed, threads);
  const double seconds = watch.seconds();
  save(task, W, options.out);
  const std::string playground = write_playground_page(options);
  const std::string page =
      write_page(task, W, KQ, options, !playground.empty(), part(kTested, 1, "writing the page"), threads);
  progress.clear();
  if (session.json) {
    Json list = Json::array();
    for (const DemoFinding& one : findings) {
      list.push_back({{"name", one.claim},
                      {"statement", find_claims(one.claim).front()->statement},
                      {"held", one.held},
                      {"evidence", one.evidence}});
    }
    Session::print_json("demo", seconds,
                        {{"claims", list},
                         {"infeasible_example", conflict},
                         {"seed", options.seed},
                         {"out", options.out},
                         {"report", page.empty() ? Json(nullptr) : Json(page)},
                         {"playground", playground.empty() ? Json(nullptr) : Json(playground)},
                         {"threads", threads.count()}});
    return kDone;
  }
  fmt::print(
      "A random attention task: 6 queries, 8 tokens each, d = 10. Softmax attention is trained on it twice, and\n"
      "the SVMs of the tokens that it selects are solved. What the theory expects (attsvm claims list), and what "
      "happens here:\n\n");
  for (const DemoFinding& one : findings) {
    fmt::print("{} {}\n", one.held ? "[holds]" : "[FAILS]", one.claim);
    for (const std::string& line : wrapped(find_claims(one.claim).front()->statement)) fmt::print("    {}\n", line);
    for (const std::string& line : wrapped(one.evidence)) fmt::print("    > {}\n", line);
  }
  fmt::print(
      "\nNot every choice of tokens can be separated. Here no W keeps the chosen tokens of two queries of three tokens "
      "each:\n");
  for (const std::string& line : conflict) fmt::print("    {}\n", line);
  fmt::print(
      "\n{:.1f} s. In {}/: task.npz, frobenius.npz, nuclear.npz (attsvm verify checks the last two against the "
      "first).\nattsvm claims tests each statement on many tasks.\n",
      seconds, printable(options.out));
  if (page.empty()) {
    fmt::print("There is no report.html: {}.\n", page_problem());
  } else {
    fmt::print("{}: open it in a browser to see tokens, margins, the training run and the proofs.\n", printable(page));
  }
  if (playground.empty()) {
    fmt::print("There is no playground.html: {}.\n", playground_problem());
  } else {
    fmt::print("{}: the same task to drag about, with the solvers inside; the first page links to it.\n",
               printable(playground));
  }
  return kDone;
}

}  // namespace

void add_demo(CLI::App& program, Session& session) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* verb = session.add_verb(program, "demo", "Train, solve and check a built-in task, in seconds", R"(Examples:
  attsvm demo                     train W and (K,Q), solve both SVMs, test the theory
  attsvm demo --seed 7 --out d    another task
Files of an earlier demo in the folder are replaced.)",
                                    [&session, options] { return run_demo(session, *options); });
  verb->add_option("--out", options->out, "Folder to write (default: demo)");
  verb->add_option("--seed", options->seed, "Seed of the task (default: 1)");
}

}  // namespace attsvm::internal
