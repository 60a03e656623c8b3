#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/refuse.h"
#include "io/output.h"
#include "study/output.h"
#include "study/runner.h"

namespace attsvm::internal {

const std::vector<std::unique_ptr<Study>>& all_studies() {
  static const std::vector<std::unique_ptr<Study>> studies = [] {
    std::vector<std::unique_ptr<Study>> list;
    for (const auto make : {single_input_study, multi_input_study, joint_training_study, losses_study, gd_paths_study,
                            local_convergence_study, convergence_types_study, multi_token_study, quadratic_head_study,
                            svm_rank_study, atlas_study, rates_study}) {
      list.push_back(make());
    }
    return list;
  }();
  return studies;
}

}  // namespace attsvm::internal

namespace attsvm {

using namespace internal;

namespace {

namespace fs = std::filesystem;
using Source = nlohmann::json;

/// The settings of every cell, by its name; nullopt if attsvm did not write the summary.
std::optional<Source> settings_of(const std::optional<Source>& summary) {
  if (!summary) return std::nullopt;
  try {
    Source settings = Source::object();
    for (const Source& cell : summary->at("cells")) settings[cell.at("name").get<std::string>()] = cell.at("settings");
    return settings;
  } catch (const Source::exception&) {
    return std::nullopt;
  }
}

/// InputError if the folder holds the results of a different sweep of the same name.
void require_same_sweep(const Study& study, std::uint64_t seed, const std::string& folder) {
  const fs::path path = fs::path(folder) / study.facts().name;
  if (!fs::exists(path / "data.json")) return;
  Source ours = Source::object();
  for (const StudyCell& cell : study.cells()) ours[cell.name] = Source::parse(cell.settings.dump());
  const auto summary = load_summary(path.string());
  const auto theirs = settings_of(summary);
  if (theirs == ours && summary->at("seed") == seed) return;
  refuse("{}: {}; give this sweep another name, another folder (--out), or --force to replace what is there",
         (path / "data.json").string(),
         !theirs ? "is not the result of a sweep"
         : *theirs != ours
             ? "is the result of another sweep of this name: its settings differ"
             : fmt::format("is of seed {}, and this one would be of seed {}", summary->at("seed").dump(), seed));
}

/// Writes all files of a study.
void write_study(const Study& study, const std::vector<CellRows>& cells, const StudyOptions& options,
                 StudyReport& report, StudyResult& result) {
  const StudyFacts facts = study.facts();
  const Summary summary = study.summarise(cells);
  const std::string folder = (fs::path(options.folder) / facts.name).string() + "/";
  make_folder(folder);
  const auto write = [&](const char* name, const std::string& text) {
    write_text(folder + name, text);
    result.files.push_back(folder + name);
  };
  write("data.csv", table_csv(summary.table));
  write("data.json", lines_of(summary_json(facts, cells, summary, report.seed)));
  write("figure.gp", gnuplot_script(summary.figure));
  std::string problem;
  const std::string svg = draw_svg(folder + "figure.gp", problem);
  if (problem.empty()) {
    write("figure.svg", svg);
  } else {
    report.figure_problem = problem;
    fs::remove(folder + "figure.svg");  // an older figure would not match these data
  }
  if (options.export_as == "csv") write("runs.csv", runs_csv(cells, report.seed));
  if (options.export_as == "json") write("runs.json", lines_of(runs_json(facts, cells, report.seed)));
  result.findings = summary.findings;
}

StudyReport run_all(const std::vector<const Study*>& studies, std::uint64_t seed, const StudyOptions& options,
                    Threads& threads) {
  if (options.runs < 0) refuse("runs = {}; must be at least 0", options.runs);
  require_time_limit(options.time_limit);
  if (!options.export_as.empty() && options.export_as != "csv" && options.export_as != "json")
    refuse("export = {}; must be csv or json", options.export_as);
  make_folder(options.folder);
  StudyReport report{.seed = seed,
                     .store = (fs::path(options.folder) / "runs.sqlite3").string(),
                     .page = (fs::path(options.folder) / "index.html").string()};
  RunStore store(report.store);
  StudyRunner runner(store, seed, options, threads);
  for (const Study* study : studies) runner.announce(*study);
  std::vector<std::string> names;
  for (const StudyFacts& facts : published_studies()) names.push_back(facts.name);
  for (const Study* study : studies) {
    const auto began = std::chrono::steady_clock::now();
    StudyResult result{.name = study->facts().name, .title = study->facts().title};
    const std::vector<CellRows> cells = runner.collect(*study, result.reused);
    result.complete = true;
    for (const CellRows& rows : cells) {
      result.complete = result.complete && rows.complete;
      result.runs += rows.accepted();
      result.draws += static_cast<Index>(rows.rows.size());
    }
    result.cells = static_cast<Index>(cells.size());
    if (result.draws > 0) write_study(*study, cells, options, report, result);  // else stopped before it began
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    report.studies.push_back(std::move(result));
    write_text(report.page, index_page(options.folder, names));
  }
  report.stop = runner.stop();
  return report;
}

}  // namespace

std::string_view name_of(StudyStop stop) {
  switch (stop) {
    case StudyStop::finished:
      return "finished";
    case StudyStop::time_limit:
      return "time limit";
    case StudyStop::asked:
      return "interrupted";
  }
  throw std::logic_error("unknown reason to stop");
}

std::vector<StudyFacts> published_studies() {
  std::vector<StudyFacts> facts;
  for (const auto& study : all_studies()) facts.push_back(study->facts());
  return facts;
}

StudyReport reproduce(std::span<const std::string> names, const StudyOptions& options, Threads& threads) {
  std::vector<const Study*> chosen;
  for (const auto& study : all_studies()) {
    const std::string name = study->facts().name;
    if (std::find(names.begin(), names.end(), name) != names.end() ||
        (study->published() && std::find(names.begin(), names.end(), "all") != names.end())) {
      chosen.push_back(study.get());
    }
  }
  for (const std::string& name : names) {
    const bool known = name == "all" || std::any_of(chosen.begin(), chosen.end(),
                                                    [&](const Study* study) { return study->facts().name == name; });
    if (known) continue;
    std::string all;
    for (const StudyFacts& facts : published_studies()) all += facts.name + ", ";
    refuse("'{}' is not an experiment; must be one of {}or all", name, all);
  }
  return run_all(chosen, options.seed.value_or(0), options, threads);
}

StudyReport sweep(const std::string& file, const StudyOptions& options, Threads& threads) {
  const SweepFile described = load_sweep(file);
  if (!options.replace) require_same_sweep(*described.study, options.seed.value_or(described.seed), options.folder);
  return run_all({described.study.get()}, options.seed.value_or(described.seed), options, threads);
}

}  // namespace attsvm
