#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>

#include "base/refuse.h"
#include "bindings.h"
#include "io/train_into.h"

namespace attsvm::python {
namespace {

/// Every setting must be present; the Python files fill in the defaults.
TrainSettings settings_from(const Fields& given) {
  TrainSettings settings;
  for_each_setting([&]<class Value>(const Setting& setting, Value TrainSettings::*member) {
    const nb::object value = given[nb::str(setting.name.data(), setting.name.size())];
    if constexpr (std::is_same_v<Value, Optimizer>) {
      const auto text = nb::cast<std::string>(value);
      const std::string complaint = set_optimizer(text, settings);
      if (!complaint.empty()) refuse("optimizer = {}; {}", text, complaint);
    } else if constexpr (std::is_enum_v<Value>) {
      settings.*member = named<Value>(nb::cast<std::string>(value), setting.name);
    } else if constexpr (std::is_same_v<Value, RecordPlan>) {
      if (!value.is_none())
        settings.*member = {.at = nb::cast<std::vector<Index>>(value[0]), .every = nb::cast<Index>(value[1])};
    } else {
      settings.*member = nb::cast<Value>(value);
    }
  });
  return settings;
}

Start start_from(const Fields& given, Index heads) {
  const bool many = heads > 1;
  Start start;
  const auto matrix = [&](const char* name) {
    return given.contains(name) ? to_matrix(nb::cast<GivenArray>(given[name]), name, many) : RowMatrix();
  };
  start.W = matrix("W0");
  start.K = matrix("K0");
  start.Q = matrix("Q0");
  const RowMatrix v = matrix("v0");
  if (!many && v.cols() > 1) refuse("v0 has shape ({},{}); must be a vector", v.rows(), v.cols());
  if (v.size() > 0) start.v = ConstVector(v.data(), v.size());  // of many heads one after another
  return start;
}

Fields facts_of(const TrainedRun& run) {
  Fields facts;
  facts["steps"] = run.steps;
  facts["stopped"] = std::string(run.stop == TrainStop::finished ? "" : name_of(run.stop));
  facts["loss"] = run.loss;
  facts["log_loss"] = run.log_loss;
  facts["norm"] = run.norm;
  facts["log_gradient"] = run.log_gradient;
  return facts;
}

/// (arrays, facts), the arrays as in the run's file.
Answer<Fields, Fields> to_tuple(const AttentionTask& task, const TrainSettings& settings, const TrainedRun& run,
                                int threads) {
  NamedArrays arrays;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    const AttentionMap map = attention_map(task, run.W, workspace.threads());
    arrays = run_arrays(task, settings, run, map, workspace.threads());
  }
  return nb::make_tuple(to_python(arrays), facts_of(run));
}

/// Minibatches of all queries are none.
TrainSettings acting_on(const AttentionTask& task, TrainSettings settings) {
  if (settings.batch >= task.queries() && !task.next_token()) settings.batch = 0;
  return settings;
}

/// Where a run is to be written while it goes on; no path: nowhere.
struct Destination {
  std::string path;
  RunFile::Options options;
};

/// Trains into the file, which then has the run; what the file before it held is continued if that is asked for.
TrainedRun train_file(const Destination& out, const AttentionTask& task, TrainSettings settings, const Start& start,
                      Threads& threads) {
  constexpr double kSeconds = 5;  // between checkpoints, as on the command line
  Checkpoints checkpoints(kSeconds);
  Trainer* trainer_now = nullptr;
  RunFile* file_now = nullptr;
  settings.progress = [&, watched = settings.progress](const TrainProgress& now) {
    checkpoints.offer(*trainer_now, *file_now);
    return watched(now);
  };
  Trainer trainer(task, settings, threads, start);
  RunFile file(out.path, task, settings, trainer, out.options);
  trainer_now = &trainer;
  file_now = &file;
  resume(file, trainer);
  const TrainStop stop = train_into(file, trainer);
  TrainedRun run = trainer.result();
  run.stop = stop;
  const AttentionMap map = attention_map(task, run.W, threads);
  refuse_cut_files();  // before the run is written
  file.finish(run, map, stop == TrainStop::asked, threads);
  return run;
}

/// (arrays, facts, interrupted); with a destination, the arrays are empty: the file has them.
Answer<Fields, Fields, bool> train_task(const AttentionTask& task, const Fields& given, const Fields& init,
                                        double time_limit, const std::string& path, bool replace, bool resume,
                                        int threads, const nb::object& callback, nb::object bar) {
  TrainSettings settings = acting_on(task, settings_from(given));
  const Start start = start_from(init, settings.heads);
  if (given["record"].is_none()) settings.record = usual_records(task, settings);
  Watch watch(callback, std::move(bar));
  settings.time_limit = time_limit;
  settings.progress = [&](const TrainProgress& now) {
    return watch.stop([&] {  // the progress bar alone needs neither loss nor norm
      return callback.is_none() ? nb::make_tuple(now.step, 0.0, 0.0) : nb::make_tuple(now.step, now.loss(), now.norm());
    });
  };
  const Destination out{path, {.replace = replace, .resume = resume}};
  TrainedRun run;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    run = path.empty() ? train(task, settings, workspace.threads(), start)
                       : train_file(out, task, settings, start, workspace.threads());
  }
  watch.finish();
  if (!path.empty()) return nb::make_tuple(Fields(), facts_of(run), watch.interrupted());
  const auto result = to_tuple(task, settings, run, threads);
  return nb::make_tuple(result[0], result[1], watch.interrupted());
}

/// Many runs; the arrays of each are created on access.
struct Runs {
  std::vector<AttentionTask> tasks{};
  TrainSettings settings{};
  std::vector<TrainedRun> found{};
  bool interrupted = false;

  Answer<Fields, Fields> at(std::size_t k) const {
    if (k >= found.size()) throw nb::index_error();
    return to_tuple(tasks[k], acting_on(tasks[k], settings), found[k], 1);
  }
};

std::unique_ptr<Runs> train_tasks(const Items& tasks, const Fields& given, const Items& inits, int threads,
                                  const std::string& device, nb::object bar) {
  auto all = std::make_unique<Runs>();
  const Device on = device_named(device);
  for (const nb::handle task : tasks) all->tasks.push_back(nb::cast<const AttentionTask&>(task));
  all->settings = settings_from(given);
  std::vector<Start> starts;
  for (std::size_t k = 0; k < inits.size(); ++k) {
    starts.push_back(with_place(fmt::format("tasks[{}]", k),
                                [&] { return start_from(nb::cast<nb::dict>(inits[k]), all->settings.heads); }));
  }
  Watch watch(nb::none(), std::move(bar));
  std::atomic<Index> furthest = 0;  // steps of the run that began last, only for the progress bar
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    workspace.threads().set_device(on);
    watch.beside(
        [&](const std::atomic<bool>& stop) {
          TrainSettings settings = all->settings;
          settings.progress = [&](const TrainProgress& now) {
            furthest.store(now.step, std::memory_order_relaxed);
            return stop.load(std::memory_order_relaxed);
          };
          all->found = train_many(all->tasks, settings, workspace.threads(), starts);
        },
        [&] { return nb::make_tuple(furthest.load(), 0.0, 0.0); });
  }
  watch.finish();
  all->interrupted = watch.interrupted();
  return all;
}

}  // namespace

void bind_run(nb::module_& module) {
  nb::class_<Runs>(module, "Runs", "The results of train_many.")
      .def("__len__", [](const Runs& all) { return all.found.size(); })
      .def("__getitem__", &Runs::at)
      .def_prop_ro("loss",
                   [](const Runs& all) {
                     std::vector<double> list;
                     for (const TrainedRun& one : all.found) list.push_back(one.loss);
                     return to_python(Array::own(std::move(list), {static_cast<Index>(all.found.size())}));
                   })
      .def_ro("interrupted", &Runs::interrupted);
  module.def("train", &train_task, nb::arg("task"), nb::arg("settings"), nb::arg("init"), nb::arg("time_limit"),
             nb::arg("path"), nb::arg("replace"), nb::arg("resume"), nb::arg("threads"), nb::arg("callback").none(),
             nb::arg("bar").none(), "(arrays, facts, interrupted)");
  module.def("train_many", &train_tasks, nb::arg("tasks"), nb::arg("settings"), nb::arg("inits"), nb::arg("threads"),
             nb::arg("device"), nb::arg("bar").none());
  module.def(
      "check_run_file",
      [](const std::string& path, int threads) {
        const nb::gil_scoped_release unlocked;
        Workspace workspace(threads);
        load_run(path, workspace.threads());
      },
      nb::arg("path"), nb::arg("threads") = 0, "InputError unless the file holds a run.");
}

}  // namespace attsvm::python
