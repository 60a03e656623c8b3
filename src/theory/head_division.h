#pragma once

#include <span>

#include "attsvm/array.h"

namespace attsvm::internal {

/// How many heads divide the tokens among them.
struct HeadDivision {
  Index distinct = 0;           ///< how many different selections the heads have
  double tokens_per_query = 0;  ///< how many different tokens they select per query, on average
};

/// `selected` has the token that each head selects for each query, one head after another.
HeadDivision division_of(std::span<const Index> selected, Index heads);

}  // namespace attsvm::internal
