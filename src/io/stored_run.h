#pragma once

#include "attsvm/files.h"

namespace attsvm::internal {

/// From the arrays of a run's file: W and, if they are there, settings, v, task_fingerprint and the record arrays.
/// Ignores arrays of other names. InputError names the array.
StoredRun run_from(const NamedArrays& arrays);

}  // namespace attsvm::internal
