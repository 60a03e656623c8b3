#pragma once

#include <cstdint>
#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

// The small dense blocks of the dual: products of the rows of one query with each other, symmetric and size × size.

struct BlockScratch {
  std::vector<Index> member;
  std::vector<double> factor, inverse_factor;
};

/// inverse = K⁻¹ on the rows of the face, zero elsewhere. Lifts tiny pivots, which is harmless in a preconditioner.
void invert_face_block(const double* K, Index size, const std::uint8_t* face, BlockScratch& scratch, double* inverse);

/// Coordinate ascent on gᵀs − ½ sᵀKs over λ + s ≥ low, from s = 0 and g = gradient, which is updated. Ends after
/// `sweeps` or when no row value moves by more than `tolerance`.
void ascend_block(const double* K, Index size, const double* low, double tolerance, int sweeps, double* gradient,
                  double* lambda);

}  // namespace attsvm::internal
