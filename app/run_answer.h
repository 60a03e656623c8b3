#pragma once

#include "attsvm/theory.h"
#include "session.h"
#include "theory/unsolved.h"

namespace attsvm::internal {

/// The objective of an SVM; null unless it is known to be the smallest.
Json objective_json(const MarginSolution* solution);

/// "|W| = 1.23 (Frobenius), 1.5 (nuclear, rank 1)", the nuclear one only if it was looked for.
std::string objectives_text(const MarginSolution& frobenius, const std::optional<MarginSolution>& nuclear);

/// The shares of the largest margin along a run, by the name of the norm.
void add_shares(Json& fields, std::span<const MarginShares> all, const std::optional<ImpliedNorm>& implied);

/// "fro 0.9987  nuc 0.7103  ...  max* 0.887": at the last point, the implied norm with a star.
std::string shares_text(std::span<const MarginShares> all, const std::optional<ImpliedNorm>& implied);

/// The names of norms, with how their solves ended.
Json unsolved_json(const Unsolved& list);

/// Warns of SVMs that stalled and of a stop before the end, and returns the exit code that goes with them.
ExitCode end_check(const Session& session, const Unsolved& open, bool stopped);

}  // namespace attsvm::internal
