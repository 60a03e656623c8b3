#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "attsvm/error.h"
#include "attsvm/version.h"
#include "io/file.h"
#include "io/json.h"
#include "report/page.h"
#include "study/output.h"

namespace attsvm::internal {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
)";
constexpr const char* kStyle = R"(<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-size: .93rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0; border-bottom: 1px solid #ddd; }
th { font-weight: 600; } td.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: .87rem; overflow-wrap: anywhere; } summary { cursor: pointer; } .warning { color: #a03000; }
</style>
</head>
<body>
)";

std::string findings_table(const nlohmann::json& findings, bool published) {
  std::string html =
      fmt::format("<table><thead><tr><th>{}</th><th>found here</th><th>why they differ</th></tr></thead><tbody>\n",
                  published ? "published" : "expected");
  for (const auto& finding : findings) {
    html += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped_html(finding.value("paper", "")),
                        escaped_html(finding.value("ours", "")), escaped_html(finding.value("why", "")));
  }
  return html + "</tbody></table>\n";
}

std::string cells_table(const nlohmann::json& cells) {
  std::string html = fmt::format(
      "<details><summary>{} settings, with runs and rejections</summary><table><thead><tr><th>cell</th><th>runs</th>"
      "<th>draws</th><th>rejected because</th><th>settings</th></tr></thead><tbody>\n",
      cells.size());
  for (const auto& cell : cells) {
    std::string reasons;
    for (const auto& [reason, count] : cell.at("rejections").items())
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : "; ", count.dump(), reason);
    html += fmt::format(
        "<tr><td>{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td><td>{}</td><td><code>{}</code></td></tr>\n",
        escaped_html(cell.value("name", "")), cell.at("runs").dump(), cell.at("draws").dump(), escaped_html(reasons),
        escaped_html(cell.at("settings").dump()));
  }
  return html + "</tbody></table></details>\n";
}

std::string section(const std::string& name, const nlohmann::json& summary, bool has_figure) {
  std::string html = fmt::format("<section id=\"{0}\">\n<h2>{1}</h2>\n", escaped_html(name),
                                 escaped_html(summary.at("title").get<std::string>()));
  html += fmt::format("<p>{}{}</p>\n", is_published(summary) ? "Reproduces: " : "",
                      escaped_html(summary.at("paper").get<std::string>()));
  html += fmt::format("<p>{}</p>\n", escaped_html(summary.at("setting").get<std::string>()));
  if (!summary.value("complete", false))
    html += "<p class=\"warning\">Stopped before all runs were done; the same command continues from here.</p>\n";
  if (has_figure) {
    html += fmt::format("<figure><a href=\"{0}/figure.svg\"><img src=\"{0}/figure.svg\" alt=\"{1}\"></a></figure>\n",
                        escaped_html(name), escaped_html(summary.at("figure").value("caption", "")));
  }
  if (!summary.at("findings").empty()) html += findings_table(summary.at("findings"), is_published(summary));
  html += fmt::format(
      "<p>Seed {0}; {1} runs, {2} draws rejected. <a href=\"{4}/data.csv\">CSV</a> · <a "
      "href=\"{4}/data.json\">JSON</a>{3}</p>\n",
      summary.at("seed").dump(), summary.at("runs").dump(), summary.value("rejected", Index{0}),
      has_figure ? fmt::format(" · <a href=\"{}/figure.svg\">SVG</a>", escaped_html(name)) : "", escaped_html(name));
  html += cells_table(summary.at("cells"));
  return html + "</section>\n";
}

/// The title of the page: one for all published experiments; our own and sweeps are listed by their titles.
std::string title_of(const Json& experiments) {
  std::string titles;
  for (const Json& one : experiments) {
    if (one.at("published").get<bool>()) return "The published experiments, run again";
    titles += (titles.empty() ? "" : ", ") + one.at("title").get<std::string>();
  }
  return titles.empty() ? "No experiments yet" : titles;
}

}  // namespace

std::optional<nlohmann::json> load_summary(const std::string& folder) {
  try {
    const auto file = InputFile::open((fs::path(folder) / "data.json").string());
    const Bytes bytes = file->bytes();
    nlohmann::json summary = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    for (const char* name :
         {"experiment", "title", "setting", "paper", "findings", "cells", "seed", "runs", "figure"}) {
      if (!summary.contains(name)) return std::nullopt;
    }
    return summary;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string index_page(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> present;
  std::vector<std::string> others;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory()) others.push_back(entry.path().filename().string());
  }
  std::sort(others.begin(), others.end());
  for (const std::string& name : names) {
    if (std::erase(others, name) > 0) present.push_back(name);
  }
  present.insert(present.end(), others.begin(), others.end());

  std::string contents, sections;
  Json experiments = Json::array();
  for (const std::string& name : present) {
    const auto summary = load_summary((fs::path(folder) / name).string());
    if (!summary || summary->at("experiment") != name) continue;
    try {
      const bool has_figure = fs::exists(fs::path(folder) / name / "figure.svg");
      experiments.push_back(experiment_json(*summary, has_figure));
      sections += section(name, *summary, has_figure);
    } catch (const nlohmann::json::exception&) {
      continue;  // a data.json that this program did not write
    }
    contents += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", escaped_html(name),
                            escaped_html(summary->at("title").get<std::string>()));
  }
  const std::string title = title_of(experiments);
  const std::string plain = fmt::format(
      "<h1>{}</h1>\n<p>Every support vector machine behind these pictures was solved with a certificate and checked by "
      "independent code. attsvm {}.</p>\n<ul>\n{}</ul>\n{}",
      escaped_html(title), ATTSVM_VERSION, contents, sections);
  if (!built_page().problem.empty()) {
    return fmt::format("{}<title>{}</title>\n{}{}</body>\n</html>\n", kHead, escaped_html(title), kStyle, plain);
  }
  const Json data{
      {"kind", "index"}, {"attsvm", ATTSVM_VERSION}, {"title", title}, {"experiments", std::move(experiments)}};
  return fill_page(json_text(data), plain);
}

}  // namespace attsvm::internal
