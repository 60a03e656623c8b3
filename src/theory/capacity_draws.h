#pragma once

#include <string>
#include <vector>

#include "attsvm/capacity.h"
#include "theory/instances.h"

namespace attsvm::internal {

// Tasks with random selections, for capacity() and the claims and studies about it.

/// Sizes of which every selection is separable, with probability 1.
struct AlwaysSeparable {
  bool holds = false;
  std::string why;  ///< the condition with its numbers
};

/// Cross and prompt: n ≤ dz·max(1, ⌊d/(T−1)⌋); self: n ≤ d; d ≥ 2 (docs/howto/sizes.md has the proof).
AlwaysSeparable always_separable(const Recipe& recipe);

/// The size of queries that the recipe draws.
Index query_size_of(const Recipe& recipe);

/// Tasks of the recipe, each token with a normal score of its own: their best tokens are random selections.
std::vector<AttentionTask> draw_selections(const Recipe& recipe, const Draws& draws, Threads& threads);

/// The best tokens of such a task (head 0), or a further random selection of it.
std::vector<Index> selection_of_head(const AttentionTask& task, std::uint64_t seed, Index instance, Index head);

}  // namespace attsvm::internal
