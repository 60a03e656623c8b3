#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "bindings.h"
#include "io/hierarchy_data.h"
#include "train/usual_records.h"

namespace attsvm::python {
namespace {

Askers askers_from(const Fields& given) {
  const auto askers = nb::cast<std::string>(given["askers"]);
  if (askers != "live" && askers != "all") refuse("askers = {}; must be live or all", askers);
  return askers == "all" ? Askers::all : Askers::live;
}

/// (arrays of the stack's file, JSON of what is said about its heads, interrupted)
Answer<Fields, std::string, bool> train_layers(const AttentionTask& task, const Fields& given, int threads,
                                               nb::object bar) {
  StackSettings settings{.layers = nb::cast<Index>(given["layers"]),
                         .heads = nb::cast<Index>(given["heads"]),
                         .mlp = nb::cast<Index>(given["mlp"]),
                         .causal = nb::cast<bool>(given["causal"]),
                         .train_values = nb::cast<bool>(given["train_values"]),
                         .one_norm = nb::cast<bool>(given["one_norm"])};
  const auto values = nb::cast<std::string>(given["values"]);
  if (values == "identity") settings.values = StackValues::identity;
  if (values != name_of(settings.values)) refuse("values = {}; must be random or identity", values);
  TrainSettings& training = settings.training;
  const std::string complaint = set_optimizer(nb::cast<std::string>(given["optimizer"]), training);
  if (!complaint.empty()) refuse("optimizer: {}", complaint);
  training.step = nb::cast<double>(given["step"]);
  training.steps = nb::cast<Index>(given["steps"]);
  training.schedule = named<Schedule>(nb::cast<std::string>(given["schedule"]), "schedule");
  training.loss = named<Loss>(nb::cast<std::string>(given["loss"]), "loss");
  training.init = named<Init>(nb::cast<std::string>(given["init"]), "init");
  training.seed = nb::cast<std::uint64_t>(given["seed"]);
  training.time_limit = nb::cast<double>(given["time_limit"]);
  training.record = given["records"].is_none() ? usual_records(task, settings)
                                               : RecordPlan::spread(training.steps, nb::cast<Index>(given["records"]));
  HierarchySettings judged{
      .askers = askers_from(given), .null_draws = nb::cast<Index>(given["null"]), .seed = training.seed};
  Watch watch(nb::none(), std::move(bar));
  training.progress = [&](const TrainProgress& now) { return watch.stop([&] { return nb::make_tuple(now.step); }); };
  NamedArrays arrays;
  std::string heads;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    const auto begun = std::chrono::steady_clock::now();
    const StackRun run = train_stack(task, settings, workspace.threads());
    const std::chrono::duration<double> used = std::chrono::steady_clock::now() - begun;
    if (training.time_limit > 0) judged.time_limit = std::max(training.time_limit - used.count(), 1e-9);
    arrays = stack_arrays(task, settings, run);
    watch.beside(
        [&](const std::atomic<bool>& stop) {
          judged.progress = [&](const HierarchyProgress&) { return stop.load(std::memory_order_relaxed); };
          heads = hierarchy_json(run.records, hierarchy(task, run.records, judged, workspace.threads()), judged).dump();
        },
        [&] { return nb::make_tuple(run.last.step); });
  }
  watch.finish();
  return nb::make_tuple(to_python(arrays), heads, watch.interrupted());
}

StoredStack stored_stack(const AttentionTask& task, const Fields& arrays) {
  StoredStack stored = stack_from(to_named_arrays(arrays));
  with_place("stack", [&] { require_stack_of(task, stored); });
  return stored;
}

/// (JSON of what is said about the heads, interrupted)
Answer<std::string, bool> judge_stack(const AttentionTask& task, const Fields& arrays, const Fields& given, int threads,
                                      nb::object bar) {
  const StoredStack stored = stored_stack(task, arrays);
  HierarchySettings judged{
      .askers = askers_from(given),
      .null_draws = nb::cast<Index>(given["null"]),
      .seed = given["seed"].is_none() ? stored.seed.value_or(0) : nb::cast<std::uint64_t>(given["seed"]),
      .time_limit = nb::cast<double>(given["time_limit"])};
  Watch watch(nb::none(), std::move(bar));
  std::atomic<Index> done = 0;
  std::string heads;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    watch.beside(
        [&](const std::atomic<bool>& stop) {
          judged.progress = [&](const HierarchyProgress& now) {
            done.store(now.done, std::memory_order_relaxed);
            return stop.load(std::memory_order_relaxed);
          };
          heads = hierarchy_json(stored.records, hierarchy(task, stored.records, judged, workspace.threads()), judged)
                      .dump();
        },
        [&] { return nb::make_tuple(done.load()); });
  }
  watch.finish();
  return nb::make_tuple(heads, watch.interrupted());
}

/// What the heads of each layer read in the end.
std::vector<AttentionTask> read_layers(const AttentionTask& task, const Fields& arrays, const Fields& given,
                                       int threads) {
  const StoredStack stored = stored_stack(task, arrays);
  const Askers askers = askers_from(given);
  const nb::gil_scoped_release unlocked;
  Workspace workspace(threads);
  return layer_tasks(task, stored.records.back().stack, askers, workspace.threads());
}

}  // namespace

void bind_stack(nb::module_& module) {
  module.def("stack", &train_layers, nb::arg("task"), nb::arg("settings"), nb::arg("threads"), nb::arg("bar").none(),
             "(arrays, JSON of the heads, interrupted)");
  module.def("judge_stack", &judge_stack, nb::arg("task"), nb::arg("arrays"), nb::arg("settings"), nb::arg("threads"),
             nb::arg("bar").none(), "(JSON of the heads, interrupted)");
  module.def("layer_tasks", &read_layers, nb::arg("task"), nb::arg("arrays"), nb::arg("settings"), nb::arg("threads"),
             "What the heads of each layer read in the end.");
  module.def("holds_stack", &holds_stack, nb::arg("path"), "Whether the file is one of a stack.");
}

}  // namespace attsvm::python
