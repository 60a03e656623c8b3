#pragma once

#include "attsvm/stack.h"

namespace attsvm::internal {

/// The records of a run for which nothing else is asked: RecordPlan::spread, with fewer points where one has so many
/// numbers that all of them would fill more than 256 MiB.
RecordPlan usual_records(Index steps, Index numbers);

/// The same for a stack on this task.
RecordPlan usual_records(const AttentionTask& task, const StackSettings& settings);

}  // namespace attsvm::internal
