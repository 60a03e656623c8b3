#pragma once

#include "attsvm/array.h"
#include "attsvm/threads.h"

namespace attsvm::internal {

/// Replaces the lower triangle of a symmetric, row-major n × n matrix by its Cholesky factor, on several threads with
/// fixed blocks. False: not positive definite to rounding. The caller holds a SingleThreadBlas.
bool blocked_cholesky(Index n, double* A, Threads& threads);

}  // namespace attsvm::internal
