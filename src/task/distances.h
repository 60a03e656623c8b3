#pragma once

#include "attsvm/positions.h"

namespace attsvm::internal {

/// with_positions for PositionKind::fixed_slope.
AttentionTask with_fixed_slope(const AttentionTask& task, double slope);

/// with_positions for the other kinds that speak of distances.
AttentionTask with_distances(const AttentionTask& task, PositionKind kind);

}  // namespace attsvm::internal
