#pragma once

#include <span>

#include "session.h"

namespace attsvm::internal {

/// Counts of the priority graphs of a next-token task: `graphs`, `components` (of several tokens), `orders` (edges
/// between components) and `edges`; if `each`, `graph`: every graph with its tokens, components and edges.
Json graphs_json(const AttentionTask& task, std::span<const PriorityGraph> graphs, bool each);

/// Prints the same counts in words, and what cannot be ordered.
void print_graphs(const AttentionTask& task, std::span<const PriorityGraph> graphs);

}  // namespace attsvm::internal
