#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "attsvm/selector.h"
#include "base/refuse.h"
#include "bindings.h"
#include "task/task_fields.h"

namespace attsvm::python {
namespace {

/// Indices into the embeddings are copied: they are checked once, and the caller may change the array later.
Array copied_indices(Array&& array, std::string_view name) {
  return array.given() ? Array::own(to_indices(array, name), array.shape) : array;
}

void require_shape_of(const AttentionTask& task, const RowMatrix& W) {
  if (W.rows() != task.key_size() || W.cols() != task.query_size())
    refuse("W has shape ({},{}); the task needs ({},{})", W.rows(), W.cols(), task.key_size(), task.query_size());
}

AttentionTask make_task(const Fields& given) {
  TaskArrays arrays;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    for (const TaskField& field : task_fields()) {
      if (field.name != name) continue;
      arrays.*field.member = field.member == &TaskArrays::vocabulary
                                 ? Array::texts(nb::cast<std::vector<std::string>>(value))
                                 : to_array(nb::cast<GivenArray>(value));
    }
  }
  const nb::gil_scoped_release unlocked;
  arrays.ids = copied_indices(std::move(arrays.ids), "ids");
  arrays.next = copied_indices(std::move(arrays.next), "next");
  return AttentionTask(std::move(arrays));
}

Items ties_of(const OptimalTokens& optimal) {
  nb::list ties;
  for (const Tie& tie : optimal.ties) ties.append(nb::make_tuple(tie.query, tie.tokens));
  return ties;
}

template <class Kind>
void set(const nb::dict& given, const char* name, Kind& value) {
  if (given.contains(name)) value = nb::cast<Kind>(given[name]);
}

Recipe recipe_of(const std::string& kind, const nb::dict& given) {
  const auto kinds = recipe_kinds();
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const RecipeKind& known) { return known.name == kind; });
  if (found == kinds.end()) {
    std::string known;
    for (const RecipeKind& one : kinds) known += fmt::format(" {}", one.name);
    refuse("kind = {}; must be one of{}", kind, known);
  }
  Recipe recipe = found->recipe;
  set(given, "n", recipe.n);
  set(given, "T", recipe.T);
  set(given, "d", recipe.d);
  set(given, "dz", recipe.dz);
  set(given, "shortest", recipe.shortest);
  set(given, "hidden", recipe.hidden);
  set(given, "lambda", recipe.lambda);
  set(given, "rank", recipe.rank);
  set(given, "vocabulary", recipe.vocabulary);
  set(given, "C", recipe.c);
  const auto choose_word = [&]<class Kind>(const char* name, Kind& value, const std::map<std::string, Kind>& words) {
    if (!given.contains(name)) return;
    const auto word = nb::cast<std::string>(given[name]);
    const auto at = words.find(word);
    if (at == words.end()) {
      std::string known;
      for (const auto& one : words) known += " " + one.first;
      refuse("{} = {}; must be one of{}", name, word, known);
    }
    value = at->second;
  };
  choose_word("attention", recipe.pattern,
              std::map<std::string, QueryPattern>{{"cross", QueryPattern::cross},
                                                  {"self", QueryPattern::self},
                                                  {"prompt", QueryPattern::prompt},
                                                  {"causal", QueryPattern::causal}});
  choose_word("head", recipe.head,
              std::map<std::string, HeadKind>{{"linear", HeadKind::linear},
                                              {"relu", HeadKind::hidden},
                                              {"quadratic", HeadKind::quadratic},
                                              {"none", HeadKind::none}});
  choose_word("norm", recipe.norm,
              std::map<std::string, PlantedNorm>{{"fro", PlantedNorm::frobenius}, {"nuc", PlantedNorm::nuclear}});
  return recipe;
}

}  // namespace

Array first_kept(const Selection& selection) { return Array::own(selection.firsts(), {selection.queries()}); }

Selection choose(const AttentionTask& task) { return task.select() ? *task.select() : optimal_tokens(task).selection; }

Selection choose(const AttentionTask& task, const nb::object& select) {
  if (select.is_none()) return choose(task);
  if (nb::isinstance<nb::str>(select)) {
    const auto word = nb::cast<std::string>(select);
    if (word == "opt") return optimal_tokens(task).selection;
    if (word != "file") {
      refuse(
          "select = '{}'; must be 'opt', 'file', one token per query such as select=[1, 0, 2], one set per query such "
          "as "
          "select=[{{1, 2}}, {{0}}, {{2}}], or a mask",
          word);
    }
    if (!task.select()) refuse("select = file; the task has no selection of its own");
    return *task.select();
  }
  return Selection::from_array(to_array(nb::cast<GivenArray>(select)), task.visible(), task.longest(), "select");
}

void bind_task(nb::module_& module) {
  const auto text = [](std::string_view view) { return std::string(view); };
  nb::class_<AttentionTask>(module, "Task", "Sequences of tokens, and queries that each read one of them.")
      .def_prop_ro("sequences", &AttentionTask::sequences)
      .def_prop_ro("tokens", &AttentionTask::tokens)
      .def_prop_ro("queries", &AttentionTask::queries)
      .def_prop_ro("longest", &AttentionTask::longest)
      .def_prop_ro("key_size", &AttentionTask::key_size)
      .def_prop_ro("query_size", &AttentionTask::query_size)
      .def_prop_ro("value_size", &AttentionTask::value_size)
      .def_prop_ro("causal", &AttentionTask::causal)
      .def_prop_ro("masked", &AttentionTask::masked)
      .def_prop_ro("kind", [=](const AttentionTask& task) { return text(name_of(task.kind())); })
      .def_prop_ro("head", [=](const AttentionTask& task) { return text(name_of(task.head().kind)); })
      .def("arrays", [](const AttentionTask& task) { return to_python(task_arrays(task)); })
      .def("scores",
           [](const AttentionTask& task) { return to_python(Array::own(head_values(task), {task.tokens()})); })
      .def("optimal",
           [](const AttentionTask& task) {
             const OptimalTokens optimal = optimal_tokens(task);
             return Answer<nb::any, Items>(nb::make_tuple(to_python(first_kept(optimal.selection)), ties_of(optimal)));
           })
      .def("separability",
           [](const AttentionTask& task) {
             const SeparabilityCondition condition = separability_condition(task);
             return Answer<bool, std::string>(nb::make_tuple(condition.holds, condition.reason));
           })
      .def(
          "layout",
          [](const AttentionTask& task) {
            std::vector<Index> sequence, visible, offsets;
            for (Index i = 0; i < task.queries(); ++i) {
              sequence.push_back(task.sequence(i));
              visible.push_back(task.visible(i));
            }
            for (Index s = 0; s <= task.sequences(); ++s) offsets.push_back(task.offset(s));
            return Answer<nb::any, nb::any, nb::any>(
                nb::make_tuple(to_python(Array::own(std::move(sequence), {task.queries()})),
                               to_python(Array::own(std::move(visible), {task.queries()})),
                               to_python(Array::own(std::move(offsets), {task.sequences() + 1}))));
          },
          "The sequence of every query and how many tokens it sees, and where sequences begin.")
      .def(
          "seen",
          [](const AttentionTask& task, Index query) {
            std::vector<Index> tokens(static_cast<std::size_t>(task.visible(query)));
            if (task.next_token()) {
              std::iota(tokens.begin(), tokens.end(), Index{0});
            } else {
              std::ranges::copy(task.seen(query), tokens.begin());
            }
            return to_python(Array::own(std::move(tokens), {task.visible(query)}));
          },
          nb::arg("query"))
      .def(
          "mask",
          [](const AttentionTask& task, const nb::object& select) {
            return to_python(choose(task, select).mask(task.longest()));
          },
          nb::arg("select").none())
      .def(
          "attention",
          [](const AttentionTask& task, const GivenArray& weights, int threads) {
            if (task.next_token()) refuse("attention: a next-token task has none per token; a run has label_attention");
            const RowMatrix W = to_matrix(weights, "W");
            require_shape_of(task, W);
            AttentionMap map;
            {
              const nb::gil_scoped_release unlocked;
              Workspace workspace(threads);
              map = attention_map(task, W, workspace.threads());
            }
            return Answer<nb::any, nb::any>(nb::make_tuple(to_python(Array::own(map.log_weights)),
                                                           to_python(Array::own(map.selected, {task.queries()}))));
          },
          nb::arg("W"), nb::arg("threads") = 0, "Logarithms of the softmax, (q,T), and the largest of each query.");
  module.def(
      "selecting",
      [](const AttentionTask& task, const GivenArray& weights, int threads) {
        const RowMatrix W = to_matrix(weights, "W");
        require_shape_of(task, W);
        if (!task.next_token() && task.head().kind == HeadKind::none) {
          if (task.arrays().head.given()) refuse("head has one v per head of attention; selecting needs a single v");
          refuse("head is missing; selecting needs it to judge the selected tokens");
        }
        const nb::gil_scoped_release unlocked;
        Workspace workspace(threads);
        const AttentionMap map = attention_map(task, W, workspace.threads());
        const HardSelection hard = hard_selection(task, task.head(), Loss::logistic, map);
        return std::pair(task.next_token() ? mean_entropy(task, W, workspace.threads()) : mean_entropy(map),
                         hard.accuracy);
      },
      nb::arg("task"), nb::arg("W"), nb::arg("threads") = 0, "(entropy of the attention, accuracy of its argmax)");
  module.def("make_task", &make_task, nb::arg("arrays"), "A task from arrays under the names that files use.");
  module.def(
      "load_task",
      [](const std::string& path, int threads) {
        const nb::gil_scoped_release unlocked;
        Workspace workspace(threads);
        return load_task(path, workspace.threads());
      },
      nb::arg("path"), nb::arg("threads") = 0);
  module.def(
      "generate",
      [](const std::string& kind, const Fields& given, std::uint64_t seed, std::uint32_t instance) {
        const Drawn drawn = generate(recipe_of(kind, given), seed, instance);
        return Answer<AttentionTask, Fields>(
            nb::make_tuple(drawn.task, to_python(NamedArrays(drawn.extras.begin(), drawn.extras.end()))));
      },
      nb::arg("kind"), nb::arg("given"), nb::arg("seed"), nb::arg("instance"));
  module.def(
      "with_positions",
      [](const AttentionTask& task, const std::string& kind, double base, const std::optional<GivenArray>& table,
         double slope) {
        Positions positions{.base = base, .slope = slope};
        for (const PositionKind known :
             {PositionKind::sinusoidal, PositionKind::rotary, PositionKind::table, PositionKind::fixed_slope,
              PositionKind::bias, PositionKind::slope, PositionKind::relative}) {
          if (name_of(known) == kind) positions.kind = known;
        }
        if (table) positions.table = to_array(*table);
        const nb::gil_scoped_release unlocked;
        AttentionTask placed = with_positions(task, positions);
        refuse_cut_files();
        return placed;
      },
      nb::arg("task"), nb::arg("kind"), nb::arg("base"), nb::arg("table").none(), nb::arg("slope"));
  module.def(
      "kinds",
      [] {
        std::map<std::string, std::string> kinds;
        for (const RecipeKind& kind : recipe_kinds()) kinds[std::string(kind.name)] = in_python(kind.summary);
        return kinds;
      },
      "The kinds that can be generated, with descriptions.");
}

}  // namespace attsvm::python
