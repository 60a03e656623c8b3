#include "graph_answer.h"

#include <fmt/format.h>

#include "report/graph_part.h"

namespace attsvm::internal {

Json graphs_json(const AttentionTask& task, std::span<const PriorityGraph> graphs, bool each) {
  const GraphCounts counts(graphs);
  Json fields{
      {"graphs", counts.graphs}, {"components", counts.components}, {"orders", counts.orders}, {"edges", counts.edges}};
  if (!each) return fields;
  Json list = Json::array();
  for (const PriorityGraph& graph : graphs) {
    Json edges = Json::array();
    for (const PriorityGraph::Edge& edge : graph.edges) edges.push_back({edge.from, edge.to});
    list.push_back({{"last", graph.last},
                    {"word", task.word(graph.last)},
                    {"sequences", graph.sequences},
                    {"tokens", graph.tokens},
                    {"components", graph.cycles()},
                    {"edges", std::move(edges)}});
  }
  fields["graph"] = std::move(list);
  return fields;
}

void print_graphs(const AttentionTask& task, std::span<const PriorityGraph> graphs) {
  constexpr std::size_t kWidth = 11, kShown = 10;
  const GraphCounts counts(graphs);
  print_field("graphs", kWidth,
              fmt::format("{}, one per last token: {}, {} of them a strict order", counted(counts.graphs, "graph"),
                          counted(counts.edges, "edge"), counts.orders));
  print_field("components", kWidth,
              counts.components == 0 ? std::string("none of several tokens: all can be ordered")
                                     : fmt::format("{} of several tokens, {} in all, whose logits stay finite",
                                                   counts.components, counts.tied));
  for (const std::string& line : describe_cycles(task, graphs, kShown)) print_field("", kWidth, line);
}

}  // namespace attsvm::internal
