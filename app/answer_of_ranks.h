#pragma once

#include <vector>

#include "attsvm/attsvm.h"
#include "train/shared_task.h"

namespace attsvm::internal {

// What ranks that share a task found about their parts of it, as rank 0 puts it together; called by all of them.

/// Rank 0: this rank's solution with the rows, the selection and the relaxed queries of all.
void gather(StoredSolution& solution, const SharedTask& task);

/// Rank 0: those of all, by their numbers among all queries.
void gather(std::vector<Tie>& ties, const SharedTask& task);

}  // namespace attsvm::internal
