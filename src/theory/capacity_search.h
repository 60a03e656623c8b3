#pragma once

#include <functional>

#include "attsvm/capacity.h"
#include "theory/capacity_draws.h"

namespace attsvm::internal {

/// Counts the separable selections of a recipe; nullopt if it was stopped.
using CountSeparable = std::function<std::optional<Share>(const Recipe&)>;

/// Looks for the smallest d of the recipe at which the chance is `wanted`. `most`: the largest d to draw. `stop` is
/// asked by all threads.
CapacitySearch smallest_size(Recipe recipe, double wanted, Index most, std::uint64_t seed, const CountSeparable& count,
                             const std::function<bool()>& stop, Threads& threads);

/// The predicted chance at a few dozen sizes d at most, evenly spread around the recipe's and those of the search.
/// Empty if it was stopped.
std::vector<PredictedChance> chances_around(const Recipe& recipe, const std::optional<CapacitySearch>& search,
                                            std::uint64_t seed, const std::function<bool()>& stop, Threads& threads);

}  // namespace attsvm::internal
