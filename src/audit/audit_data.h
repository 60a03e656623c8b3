#pragma once

#include <nlohmann/json.hpp>

#include "attsvm/audit.h"

namespace attsvm::internal {

using Json = nlohmann::ordered_json;

/// What --json prints and Python reads: a list of heads (docs/formats.md).
Json audit_json(const Audit& audit);

/// One head of that list, and back. The numbers survive exactly, except that infinity becomes NaN. Json::exception or
/// InputError if it is not one.
Json head_json(const HeadAudit& head);
HeadAudit head_from(const Json& json);

/// What the numbers depend on besides the heads: every setting but `only`.
Json settings_json(const AuditSettings& settings);

/// The heads that the settings ask for.
std::vector<Index> wanted_heads(const HeadSet& heads, const AuditSettings& settings);

/// How many of these the journal has. A journal that has others besides holds work of another command: keep its file.
Index reused_heads(const AuditJournal& journal, const HeadSet& heads, const AuditSettings& settings);

/// The data of the page but for its `heads`.
Json page_lead(const HeadSet& heads, const Audit& audit, const AuditSettings& settings, const std::string& title,
               const std::string& command);

}  // namespace attsvm::internal
