#pragma once

#include "attsvm/margin.h"
#include "margin/rows/row_sums.h"

namespace attsvm::internal {

/// How evenly the directions of rows δ ζᵀ fill the space of W: the effective dimension (Σμ)²/Σμ² of the δ times that of
/// the ζ, μ the eigenvalues of their second moments after scaling to unit length, over d·d_z. About 1 for random
/// tokens; 0.001 to 0.1 for attention heads of trained models. An estimate from a few hundred rows, the same for any
/// number of threads and processes; 1 if there are too few queries to tell. `sums` are those of the problem.
double row_spread(const MarginProblem& problem, const RowSums& sums);

}  // namespace attsvm::internal
