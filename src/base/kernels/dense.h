#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

// Dense loops of the exact solver. Matrices are column-major. Leading sizes are multiples of 4 (pad4), with zeros as
// padding, so that no loop needs a scalar tail. Vector instructions are chosen at run time.

constexpr Index pad4(Index n) { return (n + 3) & ~Index{3}; }

double dot(const double* x, const double* y, Index n);           ///< n a multiple of 4
void axpy(double a, const double* x, double* y, Index n);        ///< y += a x, n a multiple of 4
void rotate(double* x, double* y, Index n, double c, double s);  ///< (x, y) ← (cx + sy, cy − sx)

void combine(const double* A, Index ld, Index n, const double* x, double* y);   ///< y = A x, A is ld × n
void project(const double* A, Index ld, Index n, const double* x, double* c);   ///< c = Aᵀ x
void subtract(const double* A, Index ld, Index n, const double* c, double* x);  ///< x −= A c
/// C = A B for small matrices: A has pad4(rows) × inner numbers and C as many rows; B needs no padding, ldb ≥ inner.
void multiply(const double* A, Index lda, Index rows, Index inner, const double* B, Index ldb, Index columns, double* C,
              Index ldc);

/// A += Σ_t l_t r_tᵀ for `count` pairs of vectors: `rows` numbers in l_t, `columns` (a multiple of 4) in r_t; A is
/// row-major.
void add_outers(const double* const* l, const double* const* r, Index count, Index rows, Index columns, double* A);
inline constexpr Index kOuters = 16;  ///< pairs per call that make good use of the registers

/// The rows of one query: δ_first … δ_{first+count−1} against the query's ζ.
struct RowBlock {
  Index first, count, query;
  Index across, gram;  ///< offsets of δᵀ (pad4(count) × d) and of δδᵀ (pad4(count) × count)
  Index ld;            ///< leading size of both
};

/// Unit rows in the layouts that the loops need: δ with stride dp, ζ with stride zp; W is dp × dz.
struct RowBlocks {
  const RowBlock* block;
  Index count, d, dp, dz, zp;
  const double *delta, *across, *gram, *zeta;
};

/// out_k = δ_kᵀ W ζ_k. `work` has room for kOuters dp + 2 pad4(longest block).
void evaluate(const RowBlocks& rows, const double* W, double* work, double* out);
/// W = Σ x_k δ_k ζ_kᵀ
void weigh(const RowBlocks& rows, const double* x, double* work, double* W);
/// Lower triangle of G(k,l) = Σ_fg F_fg (δ_kf ζ_kg)(δ_lf ζ_lg) + Σ_fg C_fg (δ_kf ζ_kg)(δ_lg ζ_lf): F is dp × dz, and C
/// is pad4(corner) × corner, corner ≤ d and dz, or null. ld ≥ rows + 3. `work` has room for 13 dp + zp.
void weighted_gram(const RowBlocks& rows, const double* F, const double* C, Index corner, double* work, double* G,
                   Index ld);
/// One epoch of group Gauss–Seidel on the dual with x ≥ low: `passes` coordinate passes per block. Updates W along with
/// x. Returns how many rows entered or left the support. Every block needs its own δᵀ and δδᵀ.
Index epoch(const RowBlocks& rows, const double* b, const double* low, Index passes, double* x, double* work,
            double* W);

/// Factors G = L D Lᵀ (L has unit diagonal), replaces the lower triangle of G by L D, and solves x = G⁻¹ b for the
/// right-hand side b in row n of G. A column whose pivot falls below `tiny` is left out: its diagonal becomes infinite,
/// its x zero. ld ≥ pad4(n + 1); further rows up to ld are right-hand sides too, and each is replaced by L⁻¹ times it.
void factor_solve(double* G, Index ld, Index n, double tiny, double* x);
void solve_upper(const double* L, Index ld, Index n, double* x);  ///< x ← L⁻ᵀD⁻¹ x with that factor
void solve_again(const double* L, Index ld, Index n, double* x);  ///< x ← G⁻¹ x with that factor

}  // namespace attsvm::internal
