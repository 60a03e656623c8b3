#pragma once

#include <span>

#include "attsvm/task.h"
#include "base/array_field.h"

namespace attsvm::internal {

using TaskField = ArrayField<TaskArrays>;

/// All arrays of a task, in the order of task files.
std::span<const TaskField> task_fields();

}  // namespace attsvm::internal
