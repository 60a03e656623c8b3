#pragma once

#include "attsvm/margin.h"
#include "attsvm/verify.h"
#include "report/plane.h"

namespace attsvm::internal {

/// The rows of an infeasible problem that contradict each other, heaviest first, in words, and as arrows to draw. The
/// matrices λ_k δ_k ζ_kᵀ of the rows add up to zero, so laid head to tail they form a closed polygon, and so do their
/// projections onto the plane with the largest share of their lengths.
Json conflict_json(const MarginProblem& problem, const StoredSolution& stored);

}  // namespace attsvm::internal
