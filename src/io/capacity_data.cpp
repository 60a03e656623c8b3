#include "io/capacity_data.h"

#include <cmath>

namespace attsvm::internal {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json share_json(const Share& share) {
  if (share.of == 0) return nullptr;
  return {{"count", share.count}, {"of", share.of}, {"share", share.value()}, {"low", share.low}, {"high", share.high}};
}

Json spread_json(const Spread& spread) {
  if (spread.count == 0) return nullptr;
  return {{"count", spread.count},
          {"mean", spread.mean},
          {"deviation", number(spread.deviation)},
          {"least", spread.least},
          {"most", spread.most}};
}

Json search_json(const CapacitySearch& search) {
  Json points = Json::array();
  for (const CapacityPoint& point : search.points)
    points.push_back({{"d", point.d}, {"separable", share_json(point.separable)}});
  return {{"wanted", search.wanted},     {"low", search.low},
          {"high", search.high},         {"predicted", search.predicted > 0 ? Json(search.predicted) : Json()},
          {"points", std::move(points)}, {"complete", search.complete}};
}

}  // namespace

Json capacity_json(const CapacitySettings& settings, const Capacity& c) {
  return {{"n", settings.n},
          {"T", settings.T},
          {"d", settings.d},
          {"dz", c.unknowns / settings.d},
          {"attention", name_of(settings.pattern)},
          {"width", settings.width > 0 ? Json(settings.width) : Json()},
          {"heads", settings.heads},
          {"draws", settings.draws},
          {"seed", settings.seed},
          {"rows", c.rows},
          {"unknowns", c.unknowns},
          {"always", c.always},
          {"why", c.why},
          {"cover", c.cover},
          {"dimension", c.dimension},
          {"load", c.load},
          {"predicted", c.predicted},
          {"separable", share_json(c.separable)},
          {"undecided", c.undecided},
          {"all_heads", share_json(c.all_heads)},
          {"fits_width", share_json(c.fits_width)},
          {"width_margin", spread_json(c.width_margin)},
          {"margin", spread_json(c.margin)},
          {"rank", spread_json(c.rank)},
          {"rank_floor", spread_json(c.rank_floor)},
          {"support", spread_json(c.support)},
          {"global", share_json(c.global)},
          {"smallest_d", c.smallest_d ? search_json(*c.smallest_d) : Json()},
          {"complete", c.complete}};
}

}  // namespace attsvm::internal
