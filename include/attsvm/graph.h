#pragma once

#include <span>
#include <string>
#include <vector>

#include "attsvm/task.h"

namespace attsvm {

/// What the sequences that end in one token say about the order of tokens: an edge from → to for every sequence whose
/// label is `from` and which holds `to` as well. Tokens that lie on a common cycle form a component; no W can order
/// them. The order across components is strict.
struct PriorityGraph {
  /// Each edge once, and not to itself.
  struct Edge {
    Index from;                                                  ///< the label
    Index to;                                                    ///< another token of its sequence
    friend bool operator==(const Edge&, const Edge&) = default;  ///< whether they are the same
  };

  Index last = 0;                 ///< the token that the sequences end in
  Index sequences = 0;            ///< how many there are
  std::vector<Index> tokens;      ///< that occur in them, ascending
  std::vector<Edge> edges;        ///< ordered by `from`, then `to`
  std::vector<Index> components;  ///< of each of `tokens`: the smallest token of its component

  Index component(Index token) const;  ///< the smallest token of the component that holds `token`
  /// Components of at least two tokens, ordered by their smallest one; their tokens ascend.
  std::vector<std::vector<Index>> cycles() const;
  Index orders() const;  ///< edges between different components
};

/// The graph of every token that a sequence ends in, ascending by it. InputError if `task` is not a next-token task.
std::vector<PriorityGraph> priority_graphs(const AttentionTask& task);

/// What cannot be ordered, one line per component of several tokens, with a shortest cycle in it: "after «the»: «cat»
/// before «dog», and back". After `most` lines a last one tells how many components there are.
std::vector<std::string> describe_cycles(const AttentionTask& task, std::span<const PriorityGraph> graphs,
                                         std::size_t most);

}  // namespace attsvm
