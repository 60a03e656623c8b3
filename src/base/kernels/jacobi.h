#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

/// One-sided Jacobi rotations: turns `count` columns of `stride` numbers among each other until the first `rows`
/// numbers of every two are orthogonal to rounding; both sizes are multiples of 4, with zeros as padding. With a matrix
/// A there and V below it, A V = U diag(σ) afterwards, in no order. Finds small σ with the accuracy that the entries
/// have. False: too many rotations.
bool orthogonalize(double* columns, Index stride, Index rows, Index count);

}  // namespace attsvm::internal
