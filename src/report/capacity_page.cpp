#include <fmt/format.h>

#include "attsvm/report.h"
#include "attsvm/version.h"
#include "io/capacity_data.h"
#include "io/json.h"

namespace attsvm {

std::string capacity_page(const CapacitySettings& settings, const Capacity& found, const std::string& command) {
  std::vector<Index> sizes;
  std::vector<double> chances;
  for (const PredictedChance& one : found.chances) {
    sizes.push_back(one.d);
    chances.push_back(one.chance);
  }
  nlohmann::ordered_json data{{"kind", "capacity"},
                              {"attsvm", ATTSVM_VERSION},
                              {"title", fmt::format("n = {}, T = {}, d = {}", settings.n, settings.T, settings.d)},
                              {"command", command},
                              {"prediction", {{"d", sizes}, {"chance", chances}}}};
  data.update(internal::capacity_json(settings, found));
  return internal::json_text(data);
}

}  // namespace attsvm
