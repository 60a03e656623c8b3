#pragma once

#include "attsvm/report.h"
#include "report/plane.h"

namespace attsvm::internal {

/// The data of the page of a run of many heads: every head as a run beside the SVMs of its own selection, how the heads
/// divide the tokens, and of as many heads as fit, from the first, all that a page of that head alone holds.
Json heads_page(const AttentionTask& task, const ReportRequest& request, Threads& threads);

}  // namespace attsvm::internal
