#pragma once

#include "attsvm/margin_problem.h"
#include "attsvm/verify.h"
#include "report/plane.h"

namespace attsvm {

/// The rows of an infeasible problem that contradict each other, heaviest first, in words, and as arrows to draw: the
/// matrices λ_k δ_k ζ_kᵀ of the rows add up to zero, so laid head to tail they lead back to where they began, and so do
/// their shadows in the plane that holds most of them.
Json conflict_json(const MarginProblem& problem, const StoredSolution& stored);

}  // namespace attsvm
