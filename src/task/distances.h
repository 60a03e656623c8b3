#pragma once

#include "attsvm/positions.h"

namespace attsvm::internal {

/// with_positions for the kinds that speak of distances.
AttentionTask with_distances(const AttentionTask& task, PositionKind kind);

}  // namespace attsvm::internal
