#pragma once

#include "attsvm/array.h"
#include "base/random.h"

namespace attsvm::internal {

/// E_x S M T E_zᵀ with random signs S and T; with M = E_xᵀ W E_z it is the null of W: as large as W in the directions
/// of the axes, at random.
RowMatrix sign_flipped(const Eigen::MatrixXd& key_axes, const Eigen::MatrixXd& M, const Eigen::MatrixXd& query_axes,
                       const Random& random);

}  // namespace attsvm::internal
