#pragma once

#include <vector>

namespace attsvm::internal {

// The binomial tree of ranks: the ranks at and below each one have consecutive numbers, so that what comes up the tree
// is in the order of ranks, and no rank sends or receives more than log2(count) messages on the way up or down.

/// The rank above; not for rank 0.
inline int parent_of(int rank) { return rank & (rank - 1); }

/// The ranks below, ascending. Those below the k-th begin with it and end before the next.
inline std::vector<int> children_of(int rank, int count) {
  std::vector<int> children;
  for (int step = 1; (rank & step) == 0 && rank + step < count; step *= 2) children.push_back(rank + step);
  return children;
}

}  // namespace attsvm::internal
