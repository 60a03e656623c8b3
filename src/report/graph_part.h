#pragma once

#include <span>

#include "attsvm/graph.h"
#include "report/plane.h"

namespace attsvm::internal {

/// What the priority graphs of a next-token task have in all.
struct GraphCounts {
  Index graphs = 0;
  Index components = 0;  ///< of several tokens
  Index tied = 0;        ///< tokens in these
  Index orders = 0;      ///< edges between components
  Index edges = 0;

  explicit GraphCounts(std::span<const PriorityGraph> all);
};

/// The graphs as a page draws them, those with components of several tokens first, then those of most sequences:
/// components as groups of tokens, each on a level below all groups that come before it, and arrows between groups.
/// Arrows that follow from others are counted, not listed. Of large graphs some tokens are left out, of many graphs
/// some graphs; totals are of all.
Json graphs_to_draw(const AttentionTask& task, std::span<const PriorityGraph> graphs);

}  // namespace attsvm::internal
