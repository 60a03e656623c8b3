#include "io/json.h"

#include <set>
#include <string>
#include <vector>

#include "base/refuse.h"

namespace attsvm::internal {

nlohmann::json parse_json(std::string_view text) {
  using nlohmann::json;
  constexpr int kDeepest = 64;
  std::vector<std::set<std::string>> keys;  // seen so far, per open object
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) refuse("JSON is nested deeper than {}", kDeepest);
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      refuse("JSON has the key '{}' twice in one object", parsed.get<std::string>());
    }
    return true;
  };
  if (text.find('\0') != text.npos) refuse("not valid JSON: it holds a zero byte");  // the parser would stop there
  try {
    return json::parse(text, watch);
  } catch (const json::exception& error) {
    std::string reason = error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    reason.erase(0, reason.find("] ") == std::string::npos ? 0 : reason.find("] ") + 2);
    refuse("not valid JSON: {}", reason);
  }
}

}  // namespace attsvm::internal
