#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/nearest.h"
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
                            svm_rank_study, atlas_study, rates_study, positions_study, decay_study, capacity_study,
                            next_token_study, router_study, heads_study, layers_study}) {
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

/// The panels of a figure, each as a figure of its own.
std::vector<Figure> single_panels(const Figure& figure) {
  std::vector<Figure> all;
  for (const Panel& panel : figure.panels) all.push_back({.title = figure.title, .columns = 1, .panels = {panel}});
  return all;
}

/// Removes figures of an earlier call: what this one does not draw would not match its data.
void remove_figures(const std::string& folder) {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string stem = entry.path().stem().string(), kind = entry.path().extension().string();
    const bool drawn = kind == ".svg" || kind == ".pdf" || kind == ".png" || kind == ".gp";
    if (drawn && (stem == "figure" || (stem.starts_with("figure-") && stem.size() == 8))) fs::remove(entry.path());
  }
}

/// What is drawn, trained and solved. The text names the full counts; --runs asks for others.
std::string setting_of(const Study& study, const StudyOptions& options) {
  const std::vector<StudyCell> cells = study.cells();
  const bool known = std::any_of(all_studies().begin(), all_studies().end(),
                                 [&](const std::unique_ptr<Study>& one) { return one.get() == &study; });
  const bool other = std::any_of(cells.begin(), cells.end(), [&](const StudyCell& cell) {
    return (cell.most_runs > 0 ? std::min(options.runs, cell.most_runs) : options.runs) != cell.runs;
  });
  if (!known || options.runs == 0 || !other) return study.facts().setting;
  return fmt::format("{} These are the full counts; here --runs {} was given, for every setting.",
                     study.facts().setting, options.runs);
}

/// Writes all files of a study.
void write_study(const Study& study, const std::vector<CellRows>& cells, const StudyOptions& options,
                 StudyReport& report, StudyResult& result) {
  StudyFacts facts = study.facts();
  facts.setting = setting_of(study, options);
  const Summary summary = study.summarise(cells);
  const std::string folder = (fs::path(options.folder) / facts.name).string() + "/";
  make_folder(folder);
  const auto write = [&](const std::string& name, const std::string& text) {
    write_text(folder + name, text);
    result.files.push_back(folder + name);
  };
  write("data.csv", table_csv(summary.table));
  write("data.json", lines_of(summary_json(facts, cells, summary, report.seed)));
  remove_figures(folder);
  const auto draw = [&](const std::string& name, const Figure& figure) {
    write(name + ".gp", gnuplot_script(figure, options.figure));
    for (const std::string& format : std::set<std::string>{"svg", options.figure.format}) {
      std::string problem;
      const std::string drawn = draw_figure(folder + name + ".gp", format, problem);
      if (problem.empty()) write(fmt::format("{}.{}", name, format), drawn);
      if (!problem.empty()) report.figure_problem = problem;
    }
  };
  draw("figure", summary.figure);
  char letter = 'a';
  if (options.figure.panels) {
    for (const Figure& panel : single_panels(summary.figure)) draw(fmt::format("figure-{}", letter++), panel);
  }
  if (options.export_as == "csv") write("runs.csv", runs_csv(cells, report.seed));
  if (options.export_as == "json") write("runs.json", lines_of(runs_json(facts, cells, report.seed)));
  result.findings = summary.findings;
  result.overview = summary.overview;
}

void require_drawable(const FigureOptions& figure) {
  constexpr std::array kFormats{"svg", "pdf", "png"};
  constexpr double kNarrow = 40, kWide = 2000, kSmall = 4, kLarge = 40;
  if (std::find(kFormats.begin(), kFormats.end(), figure.format) == kFormats.end())
    refuse("format = {}; must be svg, pdf or png", figure.format);
  if (figure.width != 0 && !(figure.width >= kNarrow && figure.width <= kWide))
    refuse("width = {} mm; must be from {} to {}", figure.width, kNarrow, kWide);
  if (!(figure.font_size >= kSmall && figure.font_size <= kLarge))
    refuse("font size = {} points; must be from {} to {}", figure.font_size, kSmall, kLarge);
}

StudyReport run_all(const std::vector<const Study*>& studies, std::uint64_t seed, const StudyOptions& options,
                    Threads& threads) {
  if (options.runs < 0) refuse("runs = {}; must be at least 0", options.runs);
  require_time_limit(options.time_limit);
  if (!options.export_as.empty() && options.export_as != "csv" && options.export_as != "json")
    refuse("export = {}; must be csv or json", options.export_as);
  require_drawable(options.figure);
  if (!ranks().first()) {
    help_studies(studies, seed, threads, ranks());
    return {.seed = seed};
  }
  make_folder(options.folder);
  StudyReport report{.seed = seed,
                     .store = (fs::path(options.folder) / "runs.sqlite3").string(),
                     .page = (fs::path(options.folder) / "index.html").string()};
  RunStore store(report.store);
  StudyRunner runner(store, seed, options, threads);
  for (const Study* study : studies) runner.announce(*study);
  std::vector<std::string> names;
  for (const StudyFacts& facts : named_studies()) names.push_back(facts.name);
  for (const Study* study : studies) {
    const auto began = std::chrono::steady_clock::now();
    const StudyFacts facts = study->facts();
    StudyResult result{.name = facts.name, .title = facts.title, .published = facts.published};
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

std::vector<StudyFacts> named_studies() {
  std::vector<StudyFacts> facts;
  for (const auto& study : all_studies()) facts.push_back(study->facts());
  return facts;
}

StudyReport reproduce(std::span<const std::string> names, const StudyOptions& options, Threads& threads) {
  std::vector<const Study*> chosen;
  for (const auto& study : all_studies()) {
    const std::string name = study->facts().name;
    if (std::find(names.begin(), names.end(), name) != names.end() ||
        (study->facts().published && std::find(names.begin(), names.end(), "all") != names.end())) {
      chosen.push_back(study.get());
    }
  }
  for (const std::string& name : names) {
    const bool known = name == "all" || std::any_of(chosen.begin(), chosen.end(),
                                                    [&](const Study* study) { return study->facts().name == name; });
    if (known) continue;
    std::vector<std::string> all;
    for (const StudyFacts& facts : named_studies()) all.push_back(facts.name);
    all.emplace_back("all");
    refuse("'{}' is not an experiment; {}", name, suggestion(name, all));
  }
  return run_all(chosen, options.seed.value_or(0), options, threads);
}

StudyReport sweep(const std::string& file, const StudyOptions& options, Threads& threads) {
  const SweepFile described = load_sweep(file);
  if (!options.replace && ranks().first())
    require_same_sweep(*described.study, options.seed.value_or(described.seed), options.folder);
  return run_all({described.study.get()}, options.seed.value_or(described.seed), options, threads);
}

}  // namespace attsvm
