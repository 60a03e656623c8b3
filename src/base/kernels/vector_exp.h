#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

/// x ← e^x for `count` numbers x ≤ 0, each to 1.5 units of 2^-53; 0 below −708. The same bits for any vector width; a
/// machine without fused multiply-add rounds differently.
void exp_nonpositive(double* x, Index count);

}  // namespace attsvm::internal
