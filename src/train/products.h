#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

// Products of the training loop, all row-major. Small ones run in plain loops, large ones in BLAS; the choice depends
// on the sizes alone.

/// out[t] = x_t · u for the rows of X (rows × d)
void dots(const double* X, Index rows, Index d, const double* u, double* out);

/// C (m × n) = A (m × k) Bᵀ, B (n × k)
void times_transposed(const double* A, const double* B, Index m, Index n, Index k, double* C);

/// C (m × n) = Aᵀ B, A (k × m), B (k × n), for the rows `first` … `last`−1 of C; lda = m
void transposed_times(const double* A, const double* B, Index m, Index n, Index k, Index first, Index last, double* C);

/// C (m × n) = A (m × k) B (k × n)
void times(const double* A, const double* B, Index m, Index n, Index k, double* C);

}  // namespace attsvm::internal
