#pragma once

#include "attsvm/theory.h"
#include "report/run_curves.h"

namespace attsvm::internal {

/// A run on the page: its recorded points (evenly thinned where they are many) with loss, norm, correlations,
/// spectrum, directions and attention, and how far the last point keeps the rows of `rows_of` ahead.
Json run_json(const AttentionTask& task, const Axes& axes, const ReportRun& given, const Check& check,
              const Compared& compared, const Answer* rows_of, Threads& threads);

}  // namespace attsvm::internal
