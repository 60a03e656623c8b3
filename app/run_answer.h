#pragma once

#include "attsvm/theory.h"
#include "session.h"

namespace attsvm::internal {

/// The objective of an SVM; null unless it is known to be the smallest.
Json objective_json(const MarginSolution* solution);

/// "|W| = 1.23 (Frobenius), 1.5 (nuclear, rank 1)", the nuclear one only if it was looked for.
std::string objectives_text(const MarginSolution& frobenius, const std::optional<MarginSolution>& nuclear);

/// The shares of the largest margin along a run, by the name of the norm.
void add_shares(Json& fields, std::span<const MarginShares> all, const std::optional<ImpliedNorm>& implied);

/// "fro 0.9987  nuc 0.7103  ...  max* 0.887": at the last point, the implied norm with a star.
std::string shares_text(std::span<const MarginShares> all, const std::optional<ImpliedNorm>& implied);

}  // namespace attsvm::internal
