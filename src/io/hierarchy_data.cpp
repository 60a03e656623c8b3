#include "io/hierarchy_data.h"

#include <algorithm>

namespace attsvm::internal {
namespace {

using HierarchyJson = nlohmann::ordered_json;

HierarchyJson beside_null(const BesideNull& number) {
  return {{"value", number.value}, {"mean", number.mean()}, {"null", number.null}};
}

}  // namespace

nlohmann::ordered_json hierarchy_json(std::span<const StackRecord> records, const std::vector<HeadMargin>& heads,
                                      const HierarchySettings& settings) {
  std::vector<Index> steps;
  for (const StackRecord& record : records) steps.push_back(record.step);
  HierarchyJson list = HierarchyJson::array();
  for (const HeadMargin& head : heads) {
    list.push_back({{"layer", head.layer},
                    {"head", head.head},
                    {"queries", head.queries},
                    {"selected", head.selected},
                    {"attention_min", head.attention},
                    {"status", name_of(head.solution.status)},
                    {"objective", head.solution.objective},
                    {"correlation", head.correlation},
                    {"rho", head.rho},
                    {"last_correlation", beside_null(head.last_correlation)},
                    {"last_rho", beside_null(head.last_rho)}});
  }
  const bool complete = std::all_of(heads.begin(), heads.end(), [](const HeadMargin& head) { return head.complete; });
  return {{"complete", complete},
          {"askers", settings.askers == Askers::live ? "live" : "all"},
          {"null_draws", settings.null_draws},
          {"record_step", steps},
          {"judged", std::move(list)}};
}

}  // namespace attsvm::internal
