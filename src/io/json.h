#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace attsvm::internal {

/// Parses untrusted text as strict JSON. InputError, with the position, for invalid JSON, duplicate keys, and nesting
/// deeper than 64.
nlohmann::json parse_json(std::string_view text);

/// JSON as text. Bytes that are not UTF-8, which names of files may have, become U+FFFD.
template <class AnyJson>
std::string json_text(const AnyJson& json) {
  return json.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

}  // namespace attsvm::internal
