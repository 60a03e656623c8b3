#pragma once

#include <span>
#include <string_view>

#include "attsvm/task.h"

namespace attsvm::internal {

/// The name of an array in task files, and where TaskArrays has it.
struct TaskField {
  std::string_view name;
  Array TaskArrays::*member;
};

/// All arrays of a task, in the order of task files.
std::span<const TaskField> task_fields();

}  // namespace attsvm::internal
