#include <algorithm>

#include "attsvm/experiments.h"
#include "study/output.h"

namespace attsvm::internal {
namespace {

using Source = nlohmann::json;

/// A list of numbers, with null for entries that are not numbers.
Json numbers(const Source& list) {
  Json out = Json::array();
  for (const Source& item : list) out.push_back(item.is_null() ? Json(nullptr) : Json(item.get<double>()));
  return out;
}

Json range(const Source& panel, const char* name) {
  const auto found = panel.find(name);
  if (found == panel.end() || found->is_null()) return nullptr;
  return Json::array({found->at(0).get<double>(), found->at(1).get<double>()});
}

Json curve_json(const Source& curve) {
  Json out{{"label", curve.at("label").get<std::string>()},
           {"mark", curve.value("mark", "line")},
           {"style", curve.value("style", 0)},
           {"thin", curve.value("thin", false)},
           {"width", curve.value("width", 0.8)},
           {"x", numbers(curve.at("x"))},
           {"y", numbers(curve.at("y"))}};
  if (curve.contains("low")) out.update({{"low", numbers(curve.at("low"))}, {"high", numbers(curve.at("high"))}});
  return out;
}

/// null for panels of curves.
Json grid_json(const Source& panel) {
  const auto found = panel.find("grid");
  if (found == panel.end() || found->is_null()) return nullptr;
  Json values = Json::array(), errors = Json::array();
  for (const Source& row : found->at("values")) values.push_back(numbers(row));
  for (const Source& row : found->at("errors")) errors.push_back(numbers(row));
  return {{"rows", found->at("rows").get<std::vector<std::string>>()},
          {"columns", found->at("columns").get<std::vector<std::string>>()},
          {"values", std::move(values)},
          {"errors", std::move(errors)},
          {"outlined", found->at("outlined").get<std::vector<int>>()}};
}

Json panel_json(const Source& panel) {
  Json curves = Json::array();
  for (const Source& curve : panel.at("curves")) curves.push_back(curve_json(curve));
  return {{"title", panel.at("title").get<std::string>()},
          {"x_label", panel.at("x_label").get<std::string>()},
          {"y_label", panel.at("y_label").get<std::string>()},
          {"log_x", panel.value("log_x", false)},
          {"log_y", panel.value("log_y", false)},
          {"x_range", range(panel, "x_range")},
          {"y_range", range(panel, "y_range")},
          {"square", panel.value("square", false)},
          {"curves", std::move(curves)},
          {"grid", grid_json(panel)}};
}

Json figure_json(const Source& figure) {
  Json panels = Json::array();
  for (const Source& panel : figure.at("panels")) panels.push_back(panel_json(panel));
  return {{"title", figure.at("title").get<std::string>()},
          {"caption", figure.at("caption").get<std::string>()},
          {"columns", figure.value("columns", 2)},
          {"panels", std::move(panels)}};
}

Json cell_json(const Source& cell) {
  return {{"name", cell.at("name").get<std::string>()},
          {"settings", cell.at("settings").get<std::map<std::string, Source>>()},
          {"runs", cell.at("runs").get<Index>()},
          {"draws", cell.at("draws").get<Index>()},
          {"rejections", cell.at("rejections").get<std::map<std::string, Index>>()}};
}

}  // namespace

/// Whether a paper has the experiment. Summaries that older programs wrote do not say it, and their names do.
bool is_published(const Source& summary) {
  const std::vector<StudyFacts> known = named_studies();
  const auto found = std::find_if(known.begin(), known.end(), [&](const StudyFacts& facts) {
    return facts.name == summary.at("experiment").get<std::string>();
  });
  return summary.value("published", found != known.end() && found->published);
}

Json experiment_json(const Source& summary, bool has_figure) {
  Json findings = Json::array(), cells = Json::array();
  for (const Source& finding : summary.at("findings")) {
    findings.push_back({{"paper", finding.at("paper").get<std::string>()},
                        {"ours", finding.at("ours").get<std::string>()},
                        {"why", finding.at("why").get<std::string>()}});
  }
  for (const Source& cell : summary.at("cells")) cells.push_back(cell_json(cell));
  Json files{"data.csv", "data.json"};
  if (has_figure) files.push_back("figure.svg");
  return {{"experiment", summary.at("experiment").get<std::string>()},
          {"title", summary.at("title").get<std::string>()},
          {"setting", summary.at("setting").get<std::string>()},
          {"paper", summary.at("paper").get<std::string>()},
          {"published", is_published(summary)},
          {"seed", summary.at("seed").get<std::uint64_t>()},
          {"runs", summary.at("runs").get<Index>()},
          {"draws", summary.at("draws").get<Index>()},
          {"rejected", summary.at("rejected").get<Index>()},
          {"complete", summary.at("complete").get<bool>()},
          {"findings", std::move(findings)},
          {"cells", std::move(cells)},
          {"figure", figure_json(summary.at("figure"))},
          {"files", std::move(files)}};
}

}  // namespace attsvm::internal
