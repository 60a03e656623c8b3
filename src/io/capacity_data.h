#pragma once

#include <nlohmann/json.hpp>

#include "attsvm/capacity.h"

namespace attsvm::internal {

/// What --json prints and Python reads: the settings, then the answer (docs/howto/sizes.md). Parts that were not asked
/// for are null, and so are numbers that are not finite.
nlohmann::ordered_json capacity_json(const CapacitySettings& settings, const Capacity& capacity);

}  // namespace attsvm::internal
