#pragma once

#include "attsvm/margin.h"
#include "attsvm/verify.h"

namespace attsvm {

/// A solver's answer as a file holds it.
StoredSolution stored(const MarginProblem& problem, const MarginSolution& solution, double tolerance);

/// What a warm start takes from a stored answer: its multipliers, and W. InputError if its norm is none.
MarginSolution warm_start_from(const StoredSolution& solution);

}  // namespace attsvm
