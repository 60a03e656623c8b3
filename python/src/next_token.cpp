#include "attsvm/next_token.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "attsvm/generate.h"
#include "io/stored_run.h"
#include "report/graph_part.h"
#include "theory.h"

namespace attsvm::python {
namespace {

/// (last, word, sequences, tokens, components, edges) of each graph.
Items graph_list(const AttentionTask& task, std::span<const PriorityGraph> graphs) {
  Items list;
  for (const PriorityGraph& graph : graphs) {
    Items edges;
    for (const PriorityGraph::Edge& edge : graph.edges) edges.append(nb::make_tuple(edge.from, edge.to));
    list.append(
        nb::make_tuple(graph.last, task.word(graph.last), graph.sequences, graph.tokens, graph.cycles(), edges));
  }
  return list;
}

Fields to_dict(const AttentionTask& task, const NextTokenCheck& check) {
  constexpr std::size_t kMostWords = 20;  // as on the command line
  const GraphCounts counts(check.graphs);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Fields result;
  result["graph"] = graph_list(task, check.graphs);
  result["graphs"] = counts.graphs;
  result["components"] = counts.components;
  result["orders"] = counts.orders;
  result["edges"] = counts.edges;
  result["words"] = describe_cycles(task, check.graphs, kMostWords);
  result["separable"] = check.decided ? nb::cast(check.separable) : nb::none();
  result["objective_fro"] = objective_of(&check.smallest);
  result["objective_nuc"] = objective_of(check.nuclear ? &*check.nuclear : nullptr);
  result["finite_dimension"] = check.finite ? nb::cast(check.finite->dimension()) : nb::none();
  result["finite_norm"] = check.finite ? check.finite->W().norm() : nan;
  result["finite_loss"] = check.finite ? check.finite->loss() : nan;
  result["correlation_fro"] = to_python(list_of(check.correlation_fro));
  result["correlation_nuc"] = to_python(list_of(check.correlation_nuc));
  result["finite_distance"] = to_python(list_of(check.finite_distance));
  result["complete"] = check.complete;
  result["unsolved"] = unsolved_fields(unsolved(check));
  return result;
}

/// `arrays` are those of a run's file, or None; `norms` further ones. Returns (fields, interrupted).
Answer<Fields, bool> check_graphs(const AttentionTask& task, const std::optional<Fields>& arrays,
                                  const std::vector<std::string>& norms, double time_limit, int threads,
                                  nb::object bar) {
  std::optional<StoredRun> run;
  if (arrays) {
    run.emplace(run_from(to_named_arrays(*arrays)));
    with_place("run", [&] { require_run_of(task, *run); });
  }
  Watch watch(nb::none(), std::move(bar));
  std::optional<NextTokenCheck> check;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    CheckSettings settings{.time_limit = time_limit, .progress = watched(watch)};
    for (const std::string& name : norms) settings.add(Norm::parse(name));
    const std::optional<RunTrace> trace = run ? std::optional(trace_of(*run)) : std::nullopt;
    check.emplace(check_next_token(task, trace ? &*trace : nullptr, settings, workspace.threads()));
  }
  watch.finish();
  Fields result = to_dict(task, *check);
  if (run) add_shares(result, check->shares, check->implied);
  return nb::make_tuple(result, watch.interrupted());
}

AttentionTask task_of_text(const nb::bytes& text, const std::string& tokens, Index T, Index stride, Index d,
                           std::uint64_t seed) {
  const Corpus corpus{
      .tokens = tokens == "byte" ? TokenKind::byte : TokenKind::word, .T = T, .stride = stride, .d = d, .seed = seed};
  if (tokens != name_of(corpus.tokens)) refuse("tokens = {}; must be word or byte", tokens);
  const std::string_view bytes(text.c_str(), text.size());
  const nb::gil_scoped_release unlocked;
  return corpus_task(bytes, corpus);
}

}  // namespace

void bind_next_token(nb::module_& module) {
  module.def("corpus", &task_of_text, nb::arg("text"), nb::arg("tokens"), nb::arg("T"), nb::arg("stride"), nb::arg("d"),
             nb::arg("seed"), "A next-token task from the bytes of a text.");
  module.def("check_next_token", &check_graphs, nb::arg("task"), nb::arg("arrays").none(), nb::arg("norms"),
             nb::arg("time_limit"), nb::arg("threads"), nb::arg("bar").none(), "(fields, interrupted)");
}

}  // namespace attsvm::python
