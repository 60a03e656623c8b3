#include "solution.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/refuse.h"
#include "bindings.h"
#include "margin/device/solves.h"
#include "margin/stored_solution.h"
#include "verify/fields.h"

namespace attsvm::python {

Solution to_solution(const MarginProblem& problem, const MarginSolution& found, double tolerance) {
  constexpr std::size_t kMostWords = 20;
  Solution solution{.stored = stored(problem, found, tolerance),
                    .gap = found.gap,
                    .violation = found.violation,
                    .residual = found.residual,
                    .support = found.support,
                    .iterations = found.iterations,
                    .rank_certified = found.rank.certified,
                    .unique = found.unique,
                    .next_singular_value = found.rank.next_singular_value,
                    .outside_mass = found.rank.outside_mass,
                    .rank_words = std::string(found.rank.words),
                    .method = std::string(found.method),
                    .words = {},
                    .warm_started = found.warm_started,
                    .history = found.history};
  if (found.status == MarginStatus::infeasible) solution.words = describe_conflict(problem, found.dual, kMostWords);
  return solution;
}

Solution from_file(StoredSolution stored) {
  Solution solution{.stored = std::move(stored)};
  const StoredSolution& file = solution.stored;
  for (std::size_t k = 0; k < file.slack.size() && k < file.rhs.size() && k < file.row_equal.size(); ++k) {
    const double slack = room_of(file, k);
    solution.violation = std::max(solution.violation, file.row_equal[k] ? std::abs(slack) : -slack);
    if (is_support(file, k)) ++solution.support;
  }
  const double distance = std::max(0.0, file.objective - file.dual_objective);
  solution.gap = file.w_only ? std::numeric_limits<double>::quiet_NaN() : distance > 0 ? distance / file.objective : 0;
  return solution;
}

nb::tuple state_of(const SolveProgress& progress) {
  return nb::make_tuple(progress.iteration, progress.objective, progress.dual_objective, progress.seconds);
}

namespace {

MarginProblem make_problem(const AttentionTask& task, Selection selection, const std::vector<Index>& relax,
                           const std::string& problem) {
  if (problem == "v") {
    if (!relax.empty()) refuse("relax cannot be used with problem = v");
    return MarginProblem::value(task, std::move(selection));
  }
  if (problem != "att") refuse("problem = {}; must be att or v", problem);
  return MarginProblem::attention(task, std::move(selection), relax);
}

/// The rows of the task's graphs, which are its only problem.
MarginProblem graph_problem(const AttentionTask& task, bool chosen, const std::string& problem) {
  if (chosen || problem != "att")
    refuse("select, relax and problem cannot be used with a next-token task: its graphs are its rows");
  return MarginProblem::graph(task, priority_graphs(task));
}

Solution solve_task(const AttentionTask& task, const nb::object& select, const std::string& norm,
                    const std::vector<Index>& relax, const std::string& kind, double tolerance, double time_limit,
                    const Solution* warm_start, int threads, nb::object callback, nb::object bar,
                    const std::vector<double>& soft) {
  const MarginProblem problem = task.next_token() ? graph_problem(task, !select.is_none() || !relax.empty(), kind)
                                                  : make_problem(task, choose(task, select), relax, kind);
  SolveSettings settings{.norm = Norm::parse(norm), .soft = soft, .tolerance = tolerance, .time_limit = time_limit};
  std::optional<MarginSolution> warm;
  if (warm_start != nullptr) warm = warm_start_from(warm_start->stored);
  Watch watch(std::move(callback), std::move(bar));
  settings.progress = [&](const SolveProgress& progress) { return watch.stop([&] { return state_of(progress); }); };
  std::optional<Solution> solution;
  {
    const nb::gil_scoped_release unlocked;
    const MarginSolution found = Workspace(threads).solve(problem, settings, warm ? &*warm : nullptr);
    solution = to_solution(problem, found, tolerance);
  }
  watch.finish();
  solution->interrupted = watch.interrupted();
  return *std::move(solution);
}

/// Many solutions; each becomes a separate object on access.
struct Solutions {
  struct Portion {
    std::size_t first = 0;
    std::vector<MarginProblem> problems{};
    std::vector<MarginSolution> found{};
  };

  std::vector<Portion> portions{};
  double tolerance = 0;
  bool interrupted = false;

  std::size_t size() const { return portions.empty() ? 0 : portions.back().first + portions.back().found.size(); }

  Solution at(std::size_t k) const {
    if (k >= size()) throw nb::index_error();
    const auto after = std::upper_bound(portions.begin(), portions.end(), k,
                                        [](std::size_t wanted, const Portion& one) { return wanted < one.first; });
    const Portion& portion = *std::prev(after);
    return to_solution(portion.problems[k - portion.first], portion.found[k - portion.first], tolerance);
  }

  template <class Use>
  void for_each(Use&& use) const {
    for (const Portion& portion : portions) {
      for (const MarginSolution& one : portion.found) use(one);
    }
  }
};

struct Question {
  const AttentionTask* task;
  std::optional<Selection> selection{};  // nullopt: the task's own, else the optimal tokens

  double rows() const { return static_cast<double>(task->queries() * task->longest()); }  // an estimate

  MarginProblem problem(const std::string& kind) const {
    if (task->next_token()) return graph_problem(*task, selection.has_value(), kind);
    return make_problem(*task, selection ? *selection : choose(*task), {}, kind);
  }
};

// Ctrl-C is checked between portions: of this many rows at first (ten times as many where they are easier), and then of
// about this duration.
constexpr double kFirstPortion = 20'000, kPortionSeconds = 0.2;

/// The next portion, with about as many rows; all remaining tasks if they are not many more.
Solutions::Portion next_portion(std::span<const Question> questions, std::size_t first, double rows,
                                const std::string& kind) {
  std::size_t end = first;
  double taken = 0;
  for (; end < questions.size() && taken < rows; ++end) taken += questions[end].rows();
  for (std::size_t k = end; k < questions.size() && taken <= 2 * rows; ++k) {
    taken += questions[k].rows();
    if (k + 1 == questions.size() && taken <= 2 * rows) end = questions.size();
  }
  Solutions::Portion portion{.first = first};
  std::size_t k = first;
  try {
    portion.problems.reserve(end - first);
    for (; k < end; ++k) portion.problems.push_back(questions[k].problem(kind));
  } catch (const InputError& error) {
    refuse("tasks[{}]: {}", k, error.what());
  }
  return portion;
}

std::unique_ptr<Solutions> solve_tasks(const Items& tasks, const Items& selects, const std::string& norm,
                                       const std::string& kind, double tolerance, int threads,
                                       const std::string& device, nb::object bar) {
  Device on = device_named(device);
  auto all = std::make_unique<Solutions>();
  all->tolerance = tolerance;
  const std::size_t count = tasks.size();
  std::vector<Question> questions;
  questions.reserve(count);
  for (std::size_t k = 0; k < count; ++k) {
    const nb::object select = selects[k];
    questions.push_back({.task = &nb::cast<const AttentionTask&>(tasks[k])});
    Question& question = questions.back();
    if (select.is_none()) continue;
    with_place(fmt::format("tasks[{}]", k), [&] { question.selection = choose(*question.task, select); });
  }
  const SolveSettings settings{.norm = Norm::parse(norm), .tolerance = tolerance};
  if (on == Device::automatic) {  // decided for all portions together, so that answers do not depend on the clock
    double squared_rows = 0;
    for (const Question& question : questions) squared_rows += question.rows() * question.rows();
    on = worth_a_device(squared_rows) ? Device::cuda : Device::cpu;
  }
  Watch watch(nb::none(), std::move(bar));
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    workspace.threads().set_device(on);
    double rows = settings.norm.is_frobenius() ? 10 * kFirstPortion : kFirstPortion;
    while (all->size() < count && !watch.stop([&] { return nb::make_tuple(all->size()); })) {
      const auto start = std::chrono::steady_clock::now();
      Solutions::Portion portion = next_portion(questions, all->size(), rows, kind);
      portion.found = solve_many(portion.problems, settings, workspace.threads());
      double done = 0;
      for (std::size_t k = 0; k < portion.found.size(); ++k) done += questions[portion.first + k].rows();
      all->portions.push_back(std::move(portion));
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      rows = kPortionSeconds / std::max(taken.count(), 1e-6) * done;
    }
  }
  watch.finish();
  all->interrupted = watch.interrupted();
  return all;
}

/// Calls visit(name, member) for every field of a solution that its file does not hold, in the order of pickles.
template <class Visit>
void for_each_fact(Visit&& visit) {
  visit("gap", &Solution::gap);
  visit("violation", &Solution::violation);
  visit("residual", &Solution::residual);
  visit("support", &Solution::support);
  visit("iterations", &Solution::iterations);
  visit("rank_certified", &Solution::rank_certified);
  visit("unique", &Solution::unique);
  visit("next_singular_value", &Solution::next_singular_value);
  visit("outside_mass", &Solution::outside_mass);
  visit("rank_words", &Solution::rank_words);
  visit("method", &Solution::method);
  visit("words", &Solution::words);
  visit("warm_started", &Solution::warm_started);
  visit("history", &Solution::history);
}

Items to_list(const std::vector<SolveProgress>& history) {
  nb::list list;
  for (const SolveProgress& progress : history) list.append(state_of(progress));
  return list;
}

template <class Value>
void read(const nb::handle& given, Value& value) {
  value = nb::cast<Value>(given);
}
void read(const nb::handle& given, std::vector<SolveProgress>& history) {
  for (const nb::handle state : nb::cast<nb::list>(given)) {
    history.push_back({nb::cast<Index>(state[0]), nb::cast<double>(state[1]), nb::cast<double>(state[2]),
                       nb::cast<double>(state[3])});
  }
}

Answer<nb::any, nb::ellipsis> facts_of(const nb::handle& solution) {
  nb::list facts;
  for_each_fact([&](const char* name, auto) { facts.append(solution.attr(name)); });
  return nb::tuple(facts);
}

Solution restore(const Fields& arrays, const Answer<nb::any, nb::ellipsis>& facts) {
  Solution solution{.stored = solution_from(to_named_arrays(arrays))};
  std::size_t next = 0;
  for_each_fact([&](const char*, auto member) { read(facts[next++], solution.*member); });
  return solution;
}

Verification verify_solution(const AttentionTask& task, const Solution& given, const std::string& norm,
                             double tolerance) {
  if (!(tolerance > 0)) refuse("tolerance = {}; must be above 0", tolerance);
  StoredSolution solution = given.stored;
  if (!norm.empty()) {
    if (!solution.w_only && Norm::parse(norm).name() != solution.norm) {
      refuse("norm = {}; the solution is for {}", norm, solution.norm);
    }
    solution.norm = Norm::parse(norm).name();
  }
  solution = completed(task, std::move(solution));
  const nb::gil_scoped_release unlocked;
  auto verdict = verify(task, solution, {.tolerance = tolerance});
  refuse_cut_files();
  return verdict;
}

}  // namespace

void bind_solution(nb::module_& module) {
  nb::class_<Solution> type(module, "Solution", "A solution of solve.");
  type.def("arrays", [](const Solution& one) { return to_python(solution_arrays(one.stored)); })
      .def("facts", &facts_of)
      .def_prop_ro("W", [](const Solution& one) { return to_python(Array::own(one.stored.W)); })
      .def_prop_ro("rank", [](const Solution& one) { return rank_of(one.stored); })
      .def_ro("interrupted", &Solution::interrupted);
  const auto add_claim = [&](const char* name, auto member) {
    type.def_prop_ro(name, [member](const Solution& one) { return one.stored.*member; });
  };
  add_claim("status", &StoredSolution::status);
  add_claim("norm", &StoredSolution::norm);
  add_claim("problem", &StoredSolution::problem);
  add_claim("objective", &StoredSolution::objective);
  add_claim("dual_objective", &StoredSolution::dual_objective);
  add_claim("w_only", &StoredSolution::w_only);
  for_each_fact([&]<class Value>(const char* name, Value Solution::*member) {
    if constexpr (std::is_same_v<Value, std::vector<SolveProgress>>) {
      type.def_prop_ro(name, [member](const Solution& one) { return to_list(one.*member); });
    } else {
      type.def_ro(name, member);
    }
  });
  nb::class_<Solutions>(module, "Solutions", "Solutions of solve_many.")
      .def("__len__", &Solutions::size)
      .def("__getitem__", &Solutions::at)
      .def_prop_ro("status",
                   [](const Solutions& all) {
                     std::vector<std::string> list;
                     all.for_each([&](const MarginSolution& one) { list.emplace_back(name_of(one.status)); });
                     return list;
                   })
      .def_prop_ro("objective",
                   [](const Solutions& all) {
                     std::vector<double> list;
                     all.for_each([&](const MarginSolution& one) { list.push_back(one.objective); });
                     return to_python(Array::own(std::move(list), {static_cast<Index>(all.size())}));
                   })
      .def_ro("interrupted", &Solutions::interrupted);
  module.def("solve", &solve_task, nb::arg("task"), nb::arg("select").none(), nb::arg("norm"), nb::arg("relax"),
             nb::arg("problem"), nb::arg("tolerance"), nb::arg("time_limit"), nb::arg("warm_start").none(),
             nb::arg("threads"), nb::arg("callback").none(), nb::arg("bar").none(), nb::arg("soft"));
  module.def("solve_many", &solve_tasks, nb::arg("tasks"), nb::arg("selects"), nb::arg("norm"), nb::arg("problem"),
             nb::arg("tolerance"), nb::arg("threads"), nb::arg("device"), nb::arg("bar").none());
  module.def(
      "load_solution",
      [](const std::string& path, int threads) {
        const nb::gil_scoped_release unlocked;
        Workspace workspace(threads);
        return from_file(load_solution(path, workspace.threads()));
      },
      nb::arg("path"), nb::arg("threads") = 0);
  module.def("restore_solution", &restore, nb::arg("arrays"), nb::arg("facts"), "Restores an unpickled solution.");
  module.def(
      "solution_of",
      [](const GivenArray& W) {
        StoredSolution stored;
        stored.W = to_matrix(W, "solution");
        stored.w_only = true;
        return from_file(std::move(stored));
      },
      nb::arg("W"), "Another solver's answer: W alone.");
  module.def(
      "verify",
      [](const AttentionTask& task, const Solution& solution, const std::string& norm, double tolerance) {
        Fields result;
        for_each_field(verify_solution(task, solution, norm, tolerance),
                       [&](const char* name, const auto& value) { result[name] = nb::cast(value); });
        return result;
      },
      nb::arg("task"), nb::arg("solution"), nb::arg("norm"), nb::arg("tolerance"));
}

}  // namespace attsvm::python
