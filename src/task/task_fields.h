#pragma once

#include <span>

#include "attsvm/task.h"
#include "base/array_field.h"

namespace attsvm::internal {

using TaskField = ArrayField<TaskArrays>;

/// All arrays of a task, in the order of task files.
std::span<const TaskField> task_fields();

/// Converts a real array to f64. InputError if a size is 0 or a number is not finite.
void take_real(Array& array, std::string_view name);

}  // namespace attsvm::internal
