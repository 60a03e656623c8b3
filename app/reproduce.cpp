#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/refuse.h"
#include "options.h"
#include "session.h"

namespace attsvm::internal {
namespace {

struct ReproduceOptions {
  std::vector<std::string> names;
  std::string file;
  StudyOptions study;
};

Json list_json() {
  Json list = Json::array();
  for (const StudyFacts& facts : named_studies()) {
    list.push_back({{"name", facts.name},
                    {"title", facts.title},
                    {"setting", facts.setting},
                    {"paper", facts.paper},
                    {"published", facts.published}});
  }
  return list;
}

void print_list() {
  for (const StudyFacts& facts : named_studies()) {
    fmt::print("{}: {}\n", facts.name, facts.title);
    print_field("setting", 7, facts.setting);
    print_field(facts.published ? "paper" : "ours", 7, facts.paper);
  }
}

Json result_json(const StudyResult& result) {
  Json findings = Json::array();
  for (const Finding& finding : result.findings)
    findings.push_back({{"paper", finding.paper}, {"ours", finding.ours}, {"why", finding.why}});
  return {{"name", result.name},
          {"title", result.title},
          {"published", result.published},
          {"complete", result.complete},
          {"cells", result.cells},
          {"runs", result.runs},
          {"draws", result.draws},
          {"rejected", result.draws - result.runs},
          {"findings", std::move(findings)},
          {"files", result.files}};
}

Json to_json(const StudyReport& report, const ReproduceOptions& options, int threads) {
  Json experiments = Json::array();
  for (const StudyResult& result : report.studies) experiments.push_back(result_json(result));
  const StudyOptions& study = options.study;
  return {{"stopped", report.stop == StudyStop::finished ? Json(nullptr) : Json(name_of(report.stop))},
          {"experiments", std::move(experiments)},
          {"out", study.folder},
          {"runs", study.runs == 0 ? Json(nullptr) : Json(study.runs)},
          {"seed", report.seed},
          {"resume", study.resume},
          {"time_limit", study.time_limit},
          {"export", study.export_as.empty() ? Json(nullptr) : Json(study.export_as)},
          {"format", study.figure.format},
          {"width", study.figure.width == 0 ? Json(nullptr) : Json(study.figure.width)},
          {"font_size", study.figure.font_size},
          {"title", study.figure.titles},
          {"panels", study.figure.panels},
          {"threads", threads},
          {"store", report.store},
          {"page", report.page},
          {"figures", report.figure_problem.empty()}};
}

/// Rows of words below their header.
void print_columns(const std::vector<std::vector<std::string>>& rows) {
  const auto letters = [](const std::string& text) {  // not bytes: ± has two
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  };
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], letters(row[c]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += "  " + row[c] + std::string(widths[c] - letters(row[c]), ' ');
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
}

void print_report(const StudyReport& report) {
  for (const StudyResult& result : report.studies) {
    fmt::print("{}: {} runs in {} settings, {} draws rejected, {}{}{}\n", result.name, result.runs, result.cells,
               result.draws - result.runs, duration(result.seconds),
               result.reused > 0 ? fmt::format(", {} draws reused", result.reused) : "",
               result.complete ? "" : "; not complete");
    print_columns(result.overview);
    for (const Finding& finding : result.findings) {
      const std::size_t width = result.published ? 5 : 8;
      print_field(result.published ? "paper" : "expected", width, finding.paper);
      print_field(result.published ? "ours" : "found", width, finding.ours);
      if (!finding.why.empty()) print_field("why", width, finding.why);
    }
  }
  fmt::print("{}: an overview page\n", printable(report.page));
}

ExitCode finish(const Session& session, const ReproduceOptions& options, const StudyReport& report, const char* verb,
                double seconds, int threads) {
  if (!report.figure_problem.empty()) session.warn(report.figure_problem);
  if (report.stop != StudyStop::finished) session.warn("the same command continues from here");
  if (session.json) {
    Session::print_json(verb, seconds, to_json(report, options, threads));
  } else {
    print_report(report);
  }
  switch (report.stop) {
    case StudyStop::finished:
      return kDone;
    case StudyStop::time_limit:
      return kLimit;
    case StudyStop::asked:
      return kInterrupted;
  }
  return kInternalError;
}

/// Shows progress and stops on Ctrl-C.
std::function<bool(const StudyProgress&)> watcher(ProgressLine& line) {
  return [&line](const StudyProgress& progress) {
    line.show(progress.share, [&] {
      return fmt::format("{} {}: {} of {} runs, {} draws", progress.study, progress.cell, progress.done,
                         progress.wanted, progress.draws);
    });
    return Session::interrupted();
  };
}

template <class Work>
ExitCode run_reproduce(const Session& session, ReproduceOptions& options, const char* verb, Work&& work) {
  Threads threads(session.threads);
  session.set_device(threads);
  ProgressLine line(session);
  options.study.progress = watcher(line);
  Session::watch_interrupts();
  const Stopwatch watch;
  const StudyReport report = work(threads);
  line.clear();
  return finish(session, options, report, verb, watch.seconds(), threads.count());
}

void add_study_options(CLI::App* verb, Session& session, StudyOptions& study, const char* runs) {
  verb->add_option("--out", study.folder, fmt::format("Folder to write to (default: {})", study.folder))
      ->check(output_name());
  verb->add_option("--runs", study.runs, fmt::format("Accepted runs per setting (default: {})", runs))
      ->check(CLI::Range(Index{1}, Index{1} << 30));
  verb->add_option("--seed", study.seed, "Seed (default: 0)");
  add_device(verb, session.device);
  verb->add_flag("--resume,!--no-resume", study.resume,
                 "Reuse the runs stored in the folder (default), or delete them first");
  verb->add_option("--time-limit", study.time_limit, "Seconds after which to stop; finished runs are kept and shown")
      ->check(positive_number());
  verb->add_option("--export", study.export_as, "Also write all runs to NAME/runs.csv or NAME/runs.json")
      ->check(CLI::IsMember({"csv", "json"}));
  FigureOptions& figure = study.figure;
  verb->add_option("--format", figure.format, "Draw figures as pdf or png too, beside the svg that the page shows")
      ->check(CLI::IsMember({"svg", "pdf", "png"}));
  verb->add_option("--width", figure.width,
                   "Width of figures in millimetres, from 40 to 2000 (default: what looks well)")
      ->check(CLI::Range(40.0, 2000.0));
  verb->add_option("--font-size", figure.font_size, "Size of the numbers on axes in points, from 4 to 40 (default: 9)")
      ->check(CLI::Range(4.0, 40.0));
  verb->add_flag("!--no-title", figure.titles, "Draw no title and no caption");
  verb->add_flag("--panels", figure.panels, "Also draw every panel alone: figure-a, figure-b, ...");
}

}  // namespace

void add_reproduce(CLI::App& program, Session& session) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App* verb = session.add_verb(
      program, "reproduce", "Run the published experiments, or our own, and draw their figures",
      R"(Examples:
  attsvm reproduce list                                names and settings of the experiments
  attsvm reproduce svm-rank --runs 20                  one experiment with fewer runs
  attsvm reproduce all --out figures                   all published ones, with their numbers of runs
  attsvm reproduce svm-rank --runs 20 --format pdf --width 84 --font-size 8 --no-title
                                                       its figure again, for a column of a paper
  attsvm reproduce atlas                               our own: which SVM does an optimizer solve?
Writes DIR/NAME/data.csv, data.json, figure.svg (and figure.gp, the script that drew it), and the overview
DIR/index.html.
Finished runs are kept in DIR/runs.sqlite3: the same command continues after it was stopped or killed.
Exit codes: 0 done, 4 stopped at the time limit, 130 interrupted)",
      [&session, options] {
        const auto& names = options->names;
        if (std::find(names.begin(), names.end(), "list") == names.end()) {
          return run_reproduce(session, *options, "reproduce",
                               [&](Threads& threads) { return reproduce(names, options->study, threads); });
        }
        if (names.size() > 1) throw InputError("list cannot be combined with other names");
        if (session.json) {
          Session::print_json("reproduce", 0, {{"experiments", list_json()}});
        } else {
          print_list();
        }
        return kDone;
      });
  verb->add_option("NAME", options->names, "Experiments to run, all, or list")->required();
  add_study_options(verb, session, options->study, "as published");
}

void add_sweep(CLI::App& program, Session& session) {
  auto options = std::make_shared<ReproduceOptions>();
  options->study.folder = "sweeps";
  CLI::App* verb = session.add_verb(
      program, "sweep", "Run an experiment of your own, described in a JSON file", R"(Example file:
  {"name": "width", "task": {"kind": "random"}, "sizes": {"n": [6], "T": [8], "d": [4, 8, 16]},
   "measure": ["feasible", "rank_fro", "rank_nuc"], "runs": 50}
docs/experiments.md lists every field. Runs are stored and figures drawn as by attsvm reproduce.
Exit codes: 0 done, 4 stopped at the time limit, 130 interrupted)",
      [&session, options] {
        return run_reproduce(session, *options, "sweep",
                             [&](Threads& threads) { return sweep(options->file, options->study, threads); });
      });
  verb->add_option("FILE", options->file, "JSON file that describes the sweep")->required();
  verb->add_flag("--force", options->study.replace, "Replace the results of a different sweep of the same name");
  add_study_options(verb, session, options->study, "those in the file, else 100");
}

}  // namespace attsvm::internal
