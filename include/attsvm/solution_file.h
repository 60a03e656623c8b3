#pragma once

#include <string>

#include "attsvm/npz.h"
#include "attsvm/verify.h"

namespace attsvm {

void save_solution(const std::string& path, const StoredSolution& solution, bool replace);

/// Reads a solution file, or a file that holds W alone (w_only is then set). InputError names file and array.
StoredSolution load_solution(const std::string& path, Threads& threads);

}  // namespace attsvm
