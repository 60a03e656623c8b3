#pragma once

#include <string>

#include "attsvm/npz.h"
#include "attsvm/verify.h"

namespace attsvm {

/// What a solution file holds.
NamedArrays solution_arrays(const StoredSolution& solution);

/// The way back. Arrays of other names are not looked at; w_only is set where there is W alone. InputError names the
/// array.
StoredSolution solution_from(const NamedArrays& arrays);

void save_solution(const std::string& path, const StoredSolution& solution, bool replace);

/// Reads a solution file, or a file that holds W alone. InputError names file and array.
StoredSolution load_solution(const std::string& path, Threads& threads);

}  // namespace attsvm
