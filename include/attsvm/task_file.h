#pragma once

#include <map>
#include <string>

#include "attsvm/npz.h"
#include "attsvm/task.h"

namespace attsvm {

/// Reads a task file. InputError names the file, the array, the place and the rule. Arrays of unknown names are
/// refused unless they start with x_; those are not read.
AttentionTask load_task(const std::string& path, Threads& threads);

/// What a task file holds.
NamedArrays task_arrays(const AttentionTask& task);

/// Writes a task file; `extras` are further arrays, named x_….
void save_task(const std::string& path, const AttentionTask& task, const std::map<std::string, Array>& extras,
               bool replace);

}  // namespace attsvm
