#include <algorithm>
#include <map>

#include "verify/rows.h"

// Builds the rows of priority graphs from ids and labels, by other means than the solvers: components by two searches,
// one along the edges and one against them.

namespace attsvm::internal::proof {
namespace {

using Arrow = std::pair<Index, Index>;  // from a label to another token of its sequence

/// Visits what can be reached from `root` along arrows that begin where they are ordered by, and has not been visited;
/// calls leave(node) when all that follows a node has been visited.
template <class Leave>
void search(const std::vector<Arrow>& arrows, Index root, std::map<Index, bool>& visited, Leave&& leave) {
  const auto first_of = [&](Index node) {
    return std::lower_bound(arrows.begin(), arrows.end(), Arrow{node, 0}) - arrows.begin();
  };
  std::vector<std::pair<Index, std::ptrdiff_t>> way;  // each node with the arrow that it follows next
  const auto enter = [&](Index node) {
    if (std::exchange(visited[node], true)) return;
    way.emplace_back(node, first_of(node));
  };
  enter(root);
  while (!way.empty()) {
    auto& [node, next] = way.back();
    if (next < static_cast<std::ptrdiff_t>(arrows.size()) && arrows[static_cast<std::size_t>(next)].first == node) {
      enter(arrows[static_cast<std::size_t>(next++)].second);
    } else {
      leave(node);
      way.pop_back();
    }
  }
}

/// The smallest token of the component of each token that an arrow touches.
std::map<Index, Index> find_components(const std::vector<Arrow>& arrows) {
  std::vector<Arrow> back;
  std::map<Index, bool> visited;
  for (const auto& [from, to] : arrows) {
    back.emplace_back(to, from);
    visited[from] = visited[to] = false;
  }
  std::sort(back.begin(), back.end());
  std::vector<Index> order;
  for (const auto& [node, seen] : std::map(visited))
    search(arrows, node, visited, [&](Index n) { order.push_back(n); });
  for (auto& [node, seen] : visited) seen = false;
  std::map<Index, Index> component;
  for (auto root = order.rbegin(); root != order.rend(); ++root) {
    std::vector<Index> members;
    search(back, *root, visited, [&](Index n) { members.push_back(n); });
    for (const Index n : members) component[n] = *std::min_element(members.begin(), members.end());
  }
  return component;
}

}  // namespace

std::vector<Row> graph_rows(const AttentionTask& task) {
  constexpr std::size_t kSmallest = 1 << 16;
  struct Arrows {
    std::vector<Arrow> list;
    std::size_t limit = kSmallest;  // how many to hold before repeated ones are removed
  };
  std::map<Index, Arrows> arrows_of;
  const auto unite = [](std::vector<Arrow>& arrows) {
    std::sort(arrows.begin(), arrows.end());
    arrows.erase(std::unique(arrows.begin(), arrows.end()), arrows.end());
  };
  for (Index i = 0; i < task.queries(); ++i) {
    const auto ids = task.ids(i);
    auto& [arrows, limit] = arrows_of[ids.back()];
    for (const Index token : ids) {
      if (token == task.next(i)) continue;
      if (arrows.size() == limit) {
        unite(arrows);
        limit = std::max(kSmallest, 2 * arrows.size());
      }
      arrows.emplace_back(task.next(i), token);
    }
  }
  std::vector<Row> rows;
  for (auto& [last, found] : arrows_of) {
    std::vector<Arrow>& arrows = found.list;
    unite(arrows);
    const std::map<Index, Index> component = find_components(arrows);
    const std::size_t first = rows.size();
    for (const auto& [token, smallest] : component) {
      if (token != smallest) rows.push_back({last, smallest, token, true, 0});
    }
    for (const auto& [from, to] : arrows) {
      if (component.at(from) != component.at(to)) rows.push_back({last, from, to, false, 1});
    }
    std::sort(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
              [](const Row& a, const Row& b) { return std::pair(a.keep, a.drop) < std::pair(b.keep, b.drop); });
  }
  return rows;
}

}  // namespace attsvm::internal::proof
