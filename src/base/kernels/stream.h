#pragma once

#include "base/kernels/dense.h"

namespace attsvm::internal {

// Loops over the rows of row-major matrices, written for memory speed. Vector instructions are chosen at run time.

/// out_t = x_t · u for `rows` rows of d numbers.
void row_dots(const double* X, Index rows, Index d, const double* u, double* out);
void row_dots(const float* X, Index rows, Index d, const float* u, float* out);

/// g = Σ_t c_t x_t. While this loop reads rows from the cache, memory is idle: it prefetches from `ahead`, if given, a
/// quarter as many numbers or more.
void row_combination(const double* X, Index rows, Index d, const double* c, double* g, const double* ahead = nullptr);
void row_combination(const float* X, Index rows, Index d, const float* c, float* g);

/// The same on the rows at[0], …, at[rows−1] of X.
void row_dots_at(const double* X, const Index* at, Index rows, Index d, const double* u, double* out);
void row_combination_at(const double* X, const Index* at, Index rows, Index d, const double* c, double* g);

/// Upper triangle of G = Σ_t a_t b_tᵀ (G and the rows of A and B have d numbers, d a multiple of 8); entries below the
/// diagonal are left undefined.
void gram_upper(const double* A, const double* B, Index rows, Index d, double* G);

/// The rows of one query, δ_k = sign·x_keep where drop[k] < 0, else x_keep − x_{drop[k]}, read once:
/// value_k = δ_k · u, square_k = ‖δ_k‖², g = Σ_k c_k δ_k. u and g have pad4(d) numbers, the padding of u zero.
struct RowDifferences {
  const double* X;
  Index d, keep;
  double sign;
  const Index* drop;
  Index rows;
};
void measure_rows(const RowDifferences& rows, const double* u, const double* c, double* value, double* square,
                  double* g);

}  // namespace attsvm::internal
