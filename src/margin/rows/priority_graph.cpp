#include <algorithm>
#include <cstdint>
#include <numeric>

#include "attsvm/graph.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

namespace {

/// The edges of one graph, each packed into one number, so that a corpus of many repetitions stays small.
class EdgeSet {
 public:
  explicit EdgeSet(Index vocabulary) : vocabulary_(static_cast<std::uint64_t>(vocabulary)) {}

  void add(Index from, Index to) {
    if (packed_.size() == limit_) compact();
    packed_.push_back(static_cast<std::uint64_t>(from) * vocabulary_ + static_cast<std::uint64_t>(to));
  }
  std::vector<PriorityGraph::Edge> take() {
    compact();
    std::vector<PriorityGraph::Edge> edges;
    edges.reserve(packed_.size());
    for (const std::uint64_t edge : packed_)
      edges.push_back({static_cast<Index>(edge / vocabulary_), static_cast<Index>(edge % vocabulary_)});
    return edges;
  }

 private:
  void compact() {
    std::sort(packed_.begin(), packed_.end());
    packed_.erase(std::unique(packed_.begin(), packed_.end()), packed_.end());
    limit_ = std::max(kSmallest, 2 * packed_.size());
  }

  static constexpr std::size_t kSmallest = 65'536;
  std::uint64_t vocabulary_;
  std::size_t limit_ = kSmallest;
  std::vector<std::uint64_t> packed_;
};

/// Position of a token in an ascending list that holds it.
std::size_t place_of(const std::vector<Index>& tokens, Index token) {
  return static_cast<std::size_t>(std::lower_bound(tokens.begin(), tokens.end(), token) - tokens.begin());
}

/// Tarjan's search for strongly connected components, with a stack of its own: paths may be as long as the vocabulary.
class ComponentSearch {
 public:
  explicit ComponentSearch(const PriorityGraph& graph)
      : tokens_(graph.tokens), begin_(tokens_.size() + 1, 0), low_(tokens_.size(), 0), number_(tokens_.size(), 0) {
    for (const PriorityGraph::Edge& edge : graph.edges) {
      ++begin_[place_of(tokens_, edge.from) + 1];
      to_.push_back(place_of(tokens_, edge.to));
    }
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    next_ = begin_;
  }

  /// The smallest token of each token's component.
  std::vector<Index> components() {
    smallest_.assign(tokens_.size(), -1);
    for (std::size_t root = 0; root < tokens_.size(); ++root) {
      if (number_[root] == 0) visit(root);
    }
    return std::move(smallest_);
  }

 private:
  void visit(std::size_t root) {
    enter(root);
    while (!path_.empty()) {
      const std::size_t at = path_.back();
      if (next_[at] < begin_[at + 1]) {
        const std::size_t to = to_[next_[at]++];
        if (number_[to] == 0) {
          enter(to);
        } else if (smallest_[to] < 0) {  // not yet in a component: on the way that led here
          low_[at] = std::min(low_[at], number_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) low_[path_.back()] = std::min(low_[path_.back()], low_[at]);
      if (low_[at] == number_[at]) close(at);
    }
  }
  void enter(std::size_t at) {
    number_[at] = low_[at] = ++count_;
    path_.push_back(at);
    open_.push_back(at);
  }
  void close(std::size_t at) {
    const auto first = std::find(open_.rbegin(), open_.rend(), at).base() - 1;
    const Index smallest = tokens_[*std::min_element(first, open_.end())];
    for (auto member = first; member != open_.end(); ++member) smallest_[*member] = smallest;
    open_.erase(first, open_.end());
  }

  const std::vector<Index>& tokens_;
  std::vector<std::size_t> begin_, next_, to_, low_, number_, path_, open_;
  std::vector<Index> smallest_;
  std::size_t count_ = 0;
};

}  // namespace

Index PriorityGraph::component(Index token) const { return components[place_of(tokens, token)]; }

std::vector<std::vector<Index>> PriorityGraph::cycles() const {
  std::vector<std::vector<Index>> all(tokens.size());
  for (std::size_t k = 0; k < tokens.size(); ++k) all[place_of(tokens, components[k])].push_back(tokens[k]);
  std::erase_if(all, [](const std::vector<Index>& members) { return members.size() < 2; });
  return all;
}

Index PriorityGraph::orders() const {
  return std::count_if(edges.begin(), edges.end(),
                       [&](const Edge& edge) { return component(edge.from) != component(edge.to); });
}

std::vector<PriorityGraph> priority_graphs(const AttentionTask& task) {
  if (!task.next_token()) refuse("ids is missing; only next-token tasks have graphs");
  std::vector<Index> order(static_cast<std::size_t>(task.queries()));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return task.last(a) < task.last(b); });
  std::vector<PriorityGraph> graphs;
  std::vector<bool> seen(static_cast<std::size_t>(task.vocabulary_size()), false);
  for (std::size_t first = 0; first < order.size();) {
    PriorityGraph& graph = graphs.emplace_back();
    graph.last = task.last(order[first]);
    EdgeSet edges(task.vocabulary_size());
    for (; first < order.size() && task.last(order[first]) == graph.last; ++first) {
      const Index label = task.next(order[first]);
      ++graph.sequences;
      for (const Index token : task.ids(order[first])) {
        if (!seen[static_cast<std::size_t>(token)]) graph.tokens.push_back(token);
        seen[static_cast<std::size_t>(token)] = true;
        if (token != label) edges.add(label, token);
      }
    }
    for (const Index token : graph.tokens) seen[static_cast<std::size_t>(token)] = false;
    std::sort(graph.tokens.begin(), graph.tokens.end());
    graph.edges = edges.take();
    graph.components = ComponentSearch(graph).components();
  }
  return graphs;
}

}  // namespace attsvm
