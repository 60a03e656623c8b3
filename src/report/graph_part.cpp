#include "report/graph_part.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace attsvm::internal {
namespace {

constexpr std::size_t kGraphs = 300, kGroups = 40, kMembers = 24;  // most that are drawn; members of each group
constexpr std::size_t kLines = 10;                                 // most lines on what cannot be ordered

struct Group {
  std::vector<Index> tokens;
  std::size_t edges = 0;  ///< that begin or end in it, and do not stay inside
};

/// Components, by their smallest token.
std::map<Index, Group> groups_of(const PriorityGraph& graph) {
  std::map<Index, Group> groups;
  for (std::size_t k = 0; k < graph.tokens.size(); ++k) groups[graph.components[k]].tokens.push_back(graph.tokens[k]);
  for (const PriorityGraph::Edge& edge : graph.edges) {
    const Index from = graph.component(edge.from), to = graph.component(edge.to);
    if (from == to) continue;
    ++groups[from].edges;
    ++groups[to].edges;
  }
  return groups;
}

/// The groups that are drawn: those of several tokens first, then those with most edges.
std::vector<Index> chosen_of(const std::map<Index, Group>& groups) {
  std::vector<Index> names;
  for (const auto& [name, group] : groups) names.push_back(name);
  std::stable_sort(names.begin(), names.end(), [&](Index a, Index b) {
    const Group &x = groups.at(a), &y = groups.at(b);
    const bool several_x = x.tokens.size() > 1, several_y = y.tokens.size() > 1;
    return several_x != several_y ? several_x : x.edges > y.edges;
  });
  names.resize(std::min(names.size(), kGroups));
  std::sort(names.begin(), names.end());
  return names;
}

/// The order of the drawn groups. It has no cycles: components are strongly connected.
class Order {
 public:
  Order(const PriorityGraph& graph, const std::vector<Index>& chosen)
      : after_(chosen.size()), level_(chosen.size(), -1) {
    const auto place = [&](Index token) -> std::size_t {
      const auto at = std::lower_bound(chosen.begin(), chosen.end(), graph.component(token));
      return at == chosen.end() || *at != graph.component(token) ? chosen.size() : std::size_t(at - chosen.begin());
    };
    for (const PriorityGraph::Edge& edge : graph.edges) {
      const std::size_t from = place(edge.from), to = place(edge.to);
      if (from != to && from < chosen.size() && to < chosen.size()) after_[from].insert(to);
    }
    std::vector<std::vector<std::size_t>> before(chosen.size());
    for (std::size_t from = 0; from < after_.size(); ++from) {
      for (const std::size_t to : after_[from]) before[to].push_back(from);
    }
    for (std::size_t k = 0; k < before.size(); ++k) deepen(k, before);
  }

  /// Below everything that comes before it.
  Index level(std::size_t group) const { return level_[group]; }

  /// The arrows from which all others follow, and how many follow.
  Json arrows(Index& implied) const {
    Json list = Json::array();
    for (std::size_t from = 0; from < after_.size(); ++from) {
      std::set<std::size_t> beyond;  // reached by two arrows or more
      for (const std::size_t next : after_[from]) reach(next, beyond);
      for (const std::size_t to : after_[from]) {
        if (beyond.contains(to)) {
          ++implied;
        } else {
          list.push_back({from, to});
        }
      }
    }
    return list;
  }

 private:
  Index deepen(std::size_t group, const std::vector<std::vector<std::size_t>>& before) {
    if (level_[group] >= 0) return level_[group];
    Index level = 0;
    for (const std::size_t one : before[group]) level = std::max(level, deepen(one, before) + 1);
    return level_[group] = level;
  }
  void reach(std::size_t from, std::set<std::size_t>& seen) const {
    for (const std::size_t to : after_[from]) {
      if (seen.insert(to).second) reach(to, seen);
    }
  }

  std::vector<std::set<std::size_t>> after_;
  std::vector<Index> level_;
};

Json graph_to_draw(const AttentionTask& task, const PriorityGraph& graph) {
  const auto groups = groups_of(graph);
  const std::vector<Index> chosen = chosen_of(groups);
  const Order order(graph, chosen);
  Json drawn = Json::array();
  Index tied = 0, tokens = 0, implied = 0;
  for (const auto& [name, group] : groups) tied += group.tokens.size() > 1 ? 1 : 0;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    std::vector<Index> members = groups.at(chosen[k]).tokens;
    const std::size_t size = members.size();
    members.resize(std::min(size, kMembers));
    tokens += static_cast<Index>(members.size());
    Json words = Json::array();
    for (const Index token : members) words.push_back(task.word(token));
    drawn.push_back({{"tokens", members}, {"words", std::move(words)}, {"size", size}, {"level", order.level(k)}});
  }
  Json arrows = order.arrows(implied);
  return {{"last", graph.last},           {"word", task.word(graph.last)},
          {"sequences", graph.sequences}, {"tokens", graph.tokens.size()},
          {"edges", graph.edges.size()},  {"orders", graph.orders()},
          {"components", tied},           {"drawn", tokens},
          {"groups", std::move(drawn)},   {"arrows", std::move(arrows)},
          {"implied", implied},           {"words", describe_cycles(task, std::span(&graph, 1), kLines)}};
}

}  // namespace

GraphCounts::GraphCounts(std::span<const PriorityGraph> all) : graphs(static_cast<Index>(all.size())) {
  for (const PriorityGraph& graph : all) {
    for (const std::vector<Index>& members : graph.cycles()) {
      ++components;
      tied += static_cast<Index>(members.size());
    }
    orders += graph.orders();
    edges += static_cast<Index>(graph.edges.size());
  }
}

Json graphs_to_draw(const AttentionTask& task, std::span<const PriorityGraph> graphs) {
  std::vector<std::size_t> order(graphs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> tied;
  for (const PriorityGraph& graph : graphs) tied.push_back(!graph.cycles().empty());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tied[a] != tied[b] ? tied[a] : graphs[a].sequences > graphs[b].sequences;
  });
  order.resize(std::min(order.size(), kGraphs));
  Json list = Json::array();
  for (const std::size_t k : order) list.push_back(graph_to_draw(task, graphs[k]));
  return list;
}

}  // namespace attsvm::internal
