#pragma once

#include "attsvm/margin.h"

namespace attsvm::internal {

// What follows from the arrays of a stored answer. Its lists of rows must be equally long, as verify() demands.

bool has_margin(const StoredSolution& solution);                 ///< a row asks for ≥ b with b > 0
bool is_support(const StoredSolution& solution, std::size_t k);  ///< W meets row k with equality
Index support_of(const StoredSolution& solution);                ///< as MarginSolution::support
Index rank_of(const StoredSolution& solution);                   ///< columns of K, else the numerical rank of W

}  // namespace attsvm::internal
