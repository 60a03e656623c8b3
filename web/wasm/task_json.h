#pragma once

#include <nlohmann/json.hpp>

#include "attsvm/task.h"

namespace attsvm::internal {

using Json = nlohmann::ordered_json;

/// The task whose arrays are given by their names in task files: {"tokens": {"shape": [1,3,2], "data": […]}, …}. The
/// numbers of `select` are token numbers, or 0 and 1 in a mask.
AttentionTask task_from(const Json& arrays);

/// The arrays of a task in the same form.
Json to_json(const AttentionTask& task);

RowMatrix matrix_from(const Json& rows);  ///< from a list of rows
Json to_json(const RowMatrix& matrix);

}  // namespace attsvm::internal
