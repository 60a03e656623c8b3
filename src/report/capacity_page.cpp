#include <fmt/format.h>

#include <algorithm>

#include "attsvm/report.h"
#include "attsvm/version.h"
#include "io/capacity_data.h"
#include "report/plane.h"
#include "theory/capacity_draws.h"
#include "theory/row_dimension.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr Index kCurvePoints = 24;  // most sizes whose chance is predicted

/// Sizes around those that were asked for and found, evenly spread.
std::vector<Index> sizes_around(const CapacitySettings& settings, const Capacity& found) {
  Index least = settings.d, most = settings.d;
  if (const auto& search = found.smallest_d) {
    for (const Index d : {search->low, search->high, search->predicted}) {
      if (d > 0) least = std::min(least, d), most = std::max(most, d);
    }
  }
  least = std::max<Index>(1, least - least / 3);
  most += most / 3 + 1;
  const Index step = std::max<Index>(1, (most - least + kCurvePoints - 2) / (kCurvePoints - 1));
  std::vector<Index> sizes;
  for (Index d = least; d <= most; d += step) sizes.push_back(d);
  return sizes;
}

double predicted_chance(const CapacitySettings& settings, Index d, Threads& threads) {
  const Recipe recipe{.n = settings.n, .T = settings.T, .d = d, .dz = settings.dz, .pattern = settings.pattern};
  if (always_separable(recipe).holds) return 1;
  return separable_chance(dimension_law(settings.T, d, settings.seed, threads), settings.n, d * query_size_of(recipe));
}

}  // namespace

std::string capacity_page(const CapacitySettings& settings, const Capacity& found, const std::string& command,
                          Threads& threads) {
  const std::vector<Index> sizes = sizes_around(settings, found);
  std::vector<double> chances;
  for (const Index d : sizes) chances.push_back(predicted_chance(settings, d, threads));
  Json data{{"kind", "capacity"},
            {"attsvm", ATTSVM_VERSION},
            {"title", fmt::format("n = {}, T = {}, d = {}", settings.n, settings.T, settings.d)},
            {"command", command},
            {"prediction", {{"d", sizes}, {"chance", chances}}}};
  data.update(capacity_json(settings, found));
  return data.dump();
}

}  // namespace attsvm
