#pragma once

#include "attsvm/report.h"
#include "report/plane.h"

namespace attsvm::internal {

/// The data of the page of a stack: every head beside the SVM of its own selection and its null over training, and the
/// attention of all heads at the end.
Json stack_page(const AttentionTask& task, const ReportStack& given, const ReportRequest& request, Threads& threads);

}  // namespace attsvm::internal
