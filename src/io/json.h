#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace attsvm::internal {

/// Parses untrusted text as strict JSON. InputError, with the position, for invalid JSON, duplicate keys, and nesting
/// deeper than 64.
nlohmann::json parse_json(std::string_view text);

}  // namespace attsvm::internal
