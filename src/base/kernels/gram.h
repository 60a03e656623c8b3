#pragma once

#include "base/kernels/dense.h"

namespace attsvm::internal {

// Loops that lay out unit rows and work on their Gram matrix, with the conventions of dense.h.

/// Computes the rows of one query from its tokens: row k is sign·x_keep (drop[k] < 0) or x_keep − x_{drop[k]}, divided
/// by its length and written with stride pad4(d). Writes the lengths to `norm`; a row of length 0 stays zero.
void unit_rows(const double* X, Index d, Index keep, double sign, const Index* drop, Index count, double* out,
               double* norm);
/// A(f,k) = row k's entry f for `count` rows of stride pad4(d): the transpose, d rows of stride ld, zero up to pad4.
void lay_across(const double* rows, Index d, Index count, double* A, Index ld);

/// H[a][k] = ζ·ζ of group a's query and the query of row k ≥ start[a], for `groups` groups of rows: group a is rows
/// start[a] … start[a+1]−1, all of query[start[a]]. Other entries up to ldd that hadamard_gram reads become zero.
void query_products(const double* zeta, Index zp, const Index* query, const Index* start, Index groups, Index ldd,
                    double* H);
/// Lower triangle of G(k,l) = (δ_k·δ_l) H[query[l]][k]; D is d × ldd feature-major, H is queries × ldd.
void hadamard_gram(const double* D, Index d, Index m, Index ldd, const double* H, const Index* query, double* G,
                   Index ld);
/// Copies the lower triangle of a G of pad4(n) columns to the upper one.
void mirror(double* G, Index ld, Index n);
/// L = the lower triangle of the rows and columns `at` (ascending) of the symmetric G; ldl leaves room for a right-hand
/// side.
void pick(const double* G, Index ld, const Index* at, Index n, double* L, Index ldl);
/// y = Σ_j x_j G(:,at[j])
void combine_at(const double* G, Index ld, const Index* at, Index n, const double* x, double* y);
/// One pass of successive over-relaxation on ½xᵀGx − bᵀx, x ≥ low, G of unit diagonal. Updates s = b − Gx along with x.
/// Returns how many entries of x became or ceased to be zero.
Index gauss_seidel(const double* G, Index ld, Index n, const double* low, double* x, double* s);

}  // namespace attsvm::internal
