#include <algorithm>
#include <deque>
#include <map>

#include "attsvm/graph.h"
#include "base/refuse.h"

namespace attsvm {

namespace {

/// The tokens of a shortest cycle through `start`, which is first; `start` lies on one.
std::vector<Index> shortest_cycle(const PriorityGraph& graph, Index start) {
  std::map<Index, Index> from;  // where each token was reached from
  std::deque<Index> open{start};
  for (;;) {
    const Index at = open.front();
    open.pop_front();
    auto edge = std::lower_bound(graph.edges.begin(), graph.edges.end(), at,
                                 [](const PriorityGraph::Edge& one, Index token) { return one.from < token; });
    for (; edge != graph.edges.end() && edge->from == at; ++edge) {
      if (edge->to == start) {
        std::vector<Index> cycle{at};
        while (cycle.back() != start) cycle.push_back(from.at(cycle.back()));
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (from.emplace(edge->to, at).second) open.push_back(edge->to);
    }
  }
}

}  // namespace

std::vector<std::string> describe_cycles(const AttentionTask& task, std::span<const PriorityGraph> graphs,
                                         std::size_t most) {
  std::vector<std::string> lines;
  std::size_t count = 0;
  const auto quoted = [&](const std::vector<Index>& tokens) {
    std::vector<std::string> words;
    for (const Index token : tokens) words.push_back("«" + internal::printable(task.word(token)) + "»");
    return words;
  };
  for (const PriorityGraph& graph : graphs) {
    for (std::vector<Index>& members : graph.cycles()) {
      if (++count > most) continue;
      const std::vector<Index> cycle = shortest_cycle(graph, members.front());
      std::string line =
          fmt::format("after {}: {}, and back", quoted({graph.last}).front(), fmt::join(quoted(cycle), " before "));
      std::erase_if(members, [&](Index token) { return std::find(cycle.begin(), cycle.end(), token) != cycle.end(); });
      constexpr std::size_t kNamed = 8;
      const std::size_t others = members.size();
      members.resize(std::min(others, kNamed));
      if (others > 0)
        line += fmt::format("; tied to them {}{}", fmt::join(quoted(members), ", "),
                            others > kNamed ? fmt::format(" and {} more", others - kNamed) : "");
      lines.push_back(std::move(line));
    }
  }
  if (count > most) lines.push_back(fmt::format("... {} components in all", count));
  return lines;
}

}  // namespace attsvm
