#pragma once

#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

/// Turns coordinates i and i + d/2 of row t by position[t]/base^(2i/d). d must be even.
void rotate_rows(Eigen::Ref<RowMatrix> rows, const std::vector<Index>& position, double base);

}  // namespace attsvm::internal
