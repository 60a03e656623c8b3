#include <set>

#include "attsvm/version.h"
#include "audit/audit_data.h"
#include "io/json.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr Index kMostWords = 100'000;  // of the text on a page

/// The sequences that pairs and uncertain queries are in, whole, as far as there is room.
Json text_json(const HeadSet& heads, const Audit& audit) {
  std::set<Index> named;
  for (const HeadAudit& head : audit.heads) {
    for (const ViewAudit& view : head.views) {
      for (const SupportPair& one : view.pairs) named.insert(one.sequence);
      for (const UncertainQuery& one : view.uncertain) named.insert(one.sequence);
    }
  }
  Json list = Json::array();
  Index room = kMostWords;
  for (const Index sequence : named) {
    room -= heads.length(sequence);
    if (room < 0) break;
    Json words = Json::array();
    for (Index t = heads.offset(sequence); t < heads.offset(sequence + 1); ++t) words.push_back(heads.text(t));
    list.push_back({{"sequence", sequence}, {"words", std::move(words)}});
  }
  return list;
}

}  // namespace

Json internal::page_lead(const HeadSet& heads, const Audit& audit, const AuditSettings& settings,
                         const std::string& title, const std::string& command) {
  return {{"kind", "audit"},
          {"attsvm", ATTSVM_VERSION},
          {"title", title},
          {"command", command.empty() ? Json(nullptr) : Json(command)},
          {"settings", settings_json(settings)},
          {"source",
           {{"heads", heads.heads()},
            {"tokens", heads.tokens()},
            {"sequences", heads.sequences()},
            {"queries", heads.queries()},
            {"size", heads.size()},
            {"self", heads.self()}}},
          {"complete", audit.complete},
          {"text", text_json(heads, audit)}};
}

std::string audit_page(const HeadSet& heads, const Audit& audit, const AuditSettings& settings,
                       const std::string& title, const std::string& command) {
  Json data = page_lead(heads, audit, settings, title, command);
  Json& list = data["heads"] = Json::array();
  for (const HeadAudit& head : audit.heads) {
    list.push_back(head_json(head));
    list.back().erase("seconds");
  }
  return json_text(data);
}

}  // namespace attsvm
