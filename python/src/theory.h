#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "attsvm/theory.h"
#include "bindings.h"
#include "theory/unsolved.h"

namespace attsvm::python {

/// Hands the state of solves to the watch.
std::function<bool(const SolveProgress&)> watched(Watch& watch);

Array list_of(const std::vector<double>& numbers);

/// The smallest norm; NaN without an optimum.
nb::object objective_of(const MarginSolution* solution);

/// How the solves ended that left something open, by the name of the norm.
Fields unsolved_fields(const Unsolved& open);

/// The shares of the largest margin along a run, by the name of the norm, and the norm that theory implies.
void add_shares(Fields& result, std::span<const MarginShares> shares, const std::optional<ImpliedNorm>& implied);

}  // namespace attsvm::python
