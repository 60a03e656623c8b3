#pragma once

#include <optional>
#include <string>
#include <vector>

#include "study/study.h"

namespace attsvm::internal {

/// What data.json holds: the study, its settings, how many runs were drawn and rejected and why, the table, the
/// findings and the numbers of the figure. No times and no dates: the same runs give the same bytes.
Json summary_json(const StudyFacts& facts, const std::vector<CellRows>& cells, const Summary& summary,
                  std::uint64_t seed);

/// The table as CSV, one line per row; numbers read back exactly, missing ones are empty.
std::string table_csv(const Table& table);

/// Every run that counts, rejected draws included.
std::string runs_csv(const std::vector<CellRows>& cells, std::uint64_t seed);
Json runs_json(const StudyFacts& facts, const std::vector<CellRows>& cells, std::uint64_t seed);

/// JSON with one line per entry of the outermost object or array.
std::string lines_of(const Json& json);

/// Whether a paper has the experiment of a data.json.
bool is_published(const nlohmann::json& summary);

/// An experiment on the index page, from its data.json: every field that the page reads, with the type that it expects.
/// nlohmann::json::exception where a field is missing or of another type.
Json experiment_json(const nlohmann::json& summary, bool has_figure);

/// The data.json of an experiment's folder; nullopt if there is none or attsvm did not write it.
std::optional<nlohmann::json> load_summary(const std::string& folder);

/// The overview page of the experiments whose data.json are in the folder; those in `names` come first, others follow
/// by name. It is interactive if this build has a page, with plain HTML inside for browsers without scripts.
std::string index_page(const std::string& folder, const std::vector<std::string>& names);

/// Writes a text file that appears complete or not at all, replacing one that exists.
void write_text(const std::string& path, const std::string& text);

}  // namespace attsvm::internal
