#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace attsvm {

/// Parses strict JSON that came from outside. InputError, with the place, for anything else, for an object that has a
/// key twice, and for nesting deeper than 64.
nlohmann::json parse_json(std::string_view text);

}  // namespace attsvm
