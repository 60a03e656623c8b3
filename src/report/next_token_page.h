#pragma once

#include "attsvm/report.h"
#include "report/plane.h"

namespace attsvm::internal {

/// The data of the page of a next-token task: its graphs, their SVMs with proofs, the finite part, and how close the
/// runs are to both.
Json next_token_page(const AttentionTask& task, const ReportRequest& request, Threads& threads);

}  // namespace attsvm::internal
