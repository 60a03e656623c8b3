#pragma once

#include "attsvm/report.h"
#include "report/plane.h"

namespace attsvm::internal {

/// The data of the page of a task that is no next-token task, with runs of one head each.
Json task_page(const AttentionTask& given_task, const ReportRequest& request, Threads& threads);

}  // namespace attsvm::internal
