#pragma once

#include "audit/head_view.h"

namespace attsvm::internal {

/// The choices at these places of HeadView::choices().
std::vector<Choice> choices_at(const HeadView& view, const std::vector<Index>& places);

/// What the head W chooses for the queries of `places`, without the choices of smallest gap.
std::vector<Choice> choices_of(const HeadView& view, const std::vector<Index>& places, const RowMatrix& W,
                               const AuditSettings& settings);

/// The stream of random numbers from which the null of a view is drawn.
std::uint32_t null_instance(Index head, bool hidden);

/// A value beside its null; NaN where there are too few draws.
NullFacts null_facts(double value, const std::vector<double>& draws);

}  // namespace attsvm::internal
