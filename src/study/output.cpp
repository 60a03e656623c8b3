#include "study/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "attsvm/version.h"
#include "io/file.h"
#include "io/json.h"
#include "study/samples.h"

namespace attsvm::internal {
namespace {

std::string csv_field(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_number_float()) return std::isfinite(value.get<double>()) ? fmt::format("{}", value.get<double>()) : "";
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

std::string csv_line(const std::vector<Json>& fields) {
  std::string line;
  for (const Json& field : fields) line += csv_field(field) + (&field == &fields.back() ? "\n" : ",");
  return line;
}

Json figure_json(const Figure& figure) {
  Json panels = Json::array();
  for (const Panel& panel : figure.panels) {
    Json curves = Json::array();
    for (const Curve& curve : panel.curves) {
      Json one{{"label", curve.label}, {"mark", name_of(curve.mark)}, {"style", curve.style},
               {"thin", curve.thin},   {"width", curve.width},        {"x", curve.x},
               {"y", curve.y}};
      if (!curve.low.empty()) one.update({{"low", curve.low}, {"high", curve.high}});
      curves.push_back(std::move(one));
    }
    Json one{{"title", panel.title}, {"x_label", panel.x_label}, {"y_label", panel.y_label}};
    if (panel.log_x) one["log_x"] = true;
    if (panel.log_y) one["log_y"] = true;
    if (panel.x_range) one["x_range"] = *panel.x_range;
    if (panel.y_range) one["y_range"] = *panel.y_range;
    if (panel.square) one["square"] = true;
    one["curves"] = std::move(curves);
    if (panel.grid) {
      Json values = Json::array(), errors = Json::array();
      for (const auto& row : panel.grid->values) values.push_back(json_list(row));
      for (const auto& row : panel.grid->errors) errors.push_back(json_list(row));
      one["grid"] = {{"rows", panel.grid->rows},
                     {"columns", panel.grid->columns},
                     {"values", std::move(values)},
                     {"errors", std::move(errors)},
                     {"outlined", panel.grid->outlined}};
    }
    panels.push_back(std::move(one));
  }
  return {
      {"title", figure.title}, {"caption", figure.caption}, {"columns", figure.columns}, {"panels", std::move(panels)}};
}

Json cell_json(const CellRows& rows) {
  std::map<std::string, Index> reasons;
  for (const StudyRow& row : rows.rows) {
    if (!row.accepted()) ++reasons[row.rejection];
  }
  const auto draws = static_cast<Index>(rows.rows.size());
  return {{"name", rows.cell.name},   {"settings", rows.cell.settings},      {"runs", rows.accepted()},
          {"draws", draws},           {"rejected", draws - rows.accepted()}, {"rejections", reasons},
          {"complete", rows.complete}};
}

}  // namespace

Json summary_json(const StudyFacts& facts, const std::vector<CellRows>& cells, const Summary& summary,
                  std::uint64_t seed) {
  Json list = Json::array(), columns = Json::array(), findings = Json::array();
  Index runs = 0, draws = 0;
  bool complete = true;
  for (const CellRows& rows : cells) {
    list.push_back(cell_json(rows));
    runs += rows.accepted();
    draws += static_cast<Index>(rows.rows.size());
    complete = complete && rows.complete;
  }
  for (const Column& column : summary.table.columns)
    columns.push_back({{"name", column.name}, {"meaning", column.meaning}});
  for (const Finding& finding : summary.findings)
    findings.push_back({{"paper", finding.paper}, {"ours", finding.ours}, {"why", finding.why}});
  return {{"attsvm", ATTSVM_VERSION},
          {"experiment", facts.name},
          {"title", facts.title},
          {"setting", facts.setting},
          {"paper", facts.paper},
          {"published", facts.published},
          {"seed", seed},
          {"runs", runs},
          {"draws", draws},
          {"rejected", draws - runs},
          {"complete", complete},
          {"findings", std::move(findings)},
          {"cells", std::move(list)},
          {"columns", std::move(columns)},
          {"rows", summary.table.rows},
          {"figure", figure_json(summary.figure)}};
}

std::string table_csv(const Table& table) {
  std::vector<Json> header;
  for (const Column& column : table.columns) header.emplace_back(column.name);
  std::string text = csv_line(header);
  for (const Json& row : table.rows) text += csv_line(row.get<std::vector<Json>>());
  return text;
}

std::string runs_csv(const std::vector<CellRows>& cells, std::uint64_t seed) {
  std::vector<std::string> names;
  for (const CellRows& rows : cells) {
    for (const StudyRow& row : rows.rows) {
      for (const auto& [name, value] : row.result.items()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  std::vector<Json> header{"cell", "seed", "instance", "rejection"};
  const Json labels = cells.empty() ? Json::object() : cells.front().cell.labels;
  for (const auto& [name, value] : labels.items()) {
    if (name != "seed") header.emplace_back(name);
  }
  header.insert(header.end(), names.begin(), names.end());
  std::string text = csv_line(header);
  for (const CellRows& rows : cells) {
    for (std::size_t k = 0; k < rows.rows.size(); ++k) {
      const Json& own = rows.cell.labels;
      std::vector<Json> fields{rows.cell.name, own.value("seed", Json(seed)), k, rows.rows[k].rejection};
      for (const auto& [name, value] : own.items()) {
        if (name != "seed") fields.push_back(value);
      }
      for (const std::string& name : names) fields.push_back(rows.rows[k].result.value(name, Json()));
      text += csv_line(fields);
    }
  }
  return text;
}

Json runs_json(const StudyFacts& facts, const std::vector<CellRows>& cells, std::uint64_t seed) {
  Json list = Json::array();
  for (const CellRows& rows : cells) {
    Json runs = Json::array();
    for (std::size_t k = 0; k < rows.rows.size(); ++k) {
      runs.push_back({{"instance", k}, {"rejection", rows.rows[k].rejection}, {"result", rows.rows[k].result}});
    }
    list.push_back({{"name", rows.cell.name}, {"settings", rows.cell.settings}, {"runs", std::move(runs)}});
  }
  return {{"attsvm", ATTSVM_VERSION}, {"experiment", facts.name}, {"seed", seed}, {"cells", std::move(list)}};
}

std::string lines_of(const Json& json) {
  std::string text = "{";
  const char* joint = "\n ";
  for (const auto& [name, value] : json.items()) {
    text += joint + Json(name).dump() + ": " + json_text(value);
    joint = ",\n ";
  }
  return text + "\n}\n";
}

void write_text(const std::string& path, const std::string& text) {
  OutputFile file(path, true);
  file.write(text);
  file.commit();
}

}  // namespace attsvm::internal
