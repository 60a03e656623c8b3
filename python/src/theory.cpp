#include "theory.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/refuse.h"
#include "io/stored_run.h"
#include "report/run_answer.h"
#include "solution.h"

namespace attsvm::python {

Array list_of(const std::vector<double>& numbers) { return Array::own(numbers, {static_cast<Index>(numbers.size())}); }

nb::object objective_of(const MarginSolution* solution) {
  const bool there = solution != nullptr && solution->status == MarginStatus::optimal;
  return there ? nb::cast(solution->objective) : nb::cast(std::numeric_limits<double>::quiet_NaN());
}

std::function<bool(const SolveProgress&)> watched(Watch& watch) {
  return [&](const SolveProgress& now) { return watch.stop([&] { return state_of(now); }); };
}

Fields unsolved_fields(const Unsolved& open) {
  Fields result;
  for (const auto& [norm, status] : open) result[norm.c_str()] = std::string(name_of(status));
  return result;
}

void add_shares(Fields& result, std::span<const MarginShares> list, const std::optional<ImpliedNorm>& implied) {
  Fields rho, status, rises, exponent, margin;
  for (const MarginShares& shares : list) {
    const std::string norm = shares.norm.name();
    rho[norm.c_str()] = to_python(list_of(shares.rho));
    status[norm.c_str()] = std::string(name_of(shares.status));
    rises[norm.c_str()] = shares.trend.rises ? nb::cast(*shares.trend.rises) : nb::none();
    exponent[norm.c_str()] = shares.trend.exponent;
    margin[norm.c_str()] = shares.margin;
  }
  result["implied_norm"] = implied ? nb::cast(implied->norm.name()) : nb::none();
  result["implied_norm_proven"] = implied && implied->proven;
  result["implied_norm_why"] = implied ? nb::cast(std::string(implied->why)) : nb::none();
  result["rho"] = rho;
  result["rho_status"] = status;
  result["rho_rises"] = rises;
  result["rho_exponent"] = exponent;
  result["largest_margin"] = margin;
}

namespace {

Items support_list(const std::vector<SupportToken>& tokens) {
  nb::list list;
  for (const SupportToken& token : tokens) {
    list.append(nb::make_tuple(token.query, token.token, token.score_gap, token.slack));
  }
  return list;
}

Fields to_dict(const AttentionTask& task, const Check& check) {
  Fields result;
  const MarginSolution& smallest = check.report ? check.report->solution : *check.gen;
  nb::list ties;
  for (const Tie& tie : check.optimal.ties) ties.append(nb::make_tuple(tie.query, tie.tokens));
  result["verdict"] = std::string(name_of(check.verdict));
  result["reason"] = check.reason;
  result["optimal"] = to_python(first_kept(check.optimal.selection));
  result["ties"] = ties;
  result["selected"] = to_python(first_kept(check.selection));
  result["kept"] = to_python(check.selection.mask(task.longest()));
  result["separable"] = check.decided ? nb::cast(check.separable) : nb::none();
  result["is_optimal"] = check.optimal_selection;
  result["locally_optimal"] = check.report && check.report->locally_optimal;
  result["support"] = support_list(check.report ? check.report->support : std::vector<SupportToken>{});
  result["ambiguous"] = support_list(check.report ? check.report->ambiguous : std::vector<SupportToken>{});
  result["objective_fro"] = objective_of(&smallest);
  result["objective_nuc"] = objective_of(check.nuclear ? &*check.nuclear : nullptr);
  result["correlation_fro"] = to_python(list_of(check.correlation_fro));
  result["correlation_nuc"] = to_python(list_of(check.correlation_nuc));
  if (check.equivalence) {
    result["correlation_gen"] = to_python(list_of(check.correlation_gen));
    result["correlation_equivalence"] = to_python(list_of(check.correlation_equivalence));
    result["correlation_single"] = to_python(list_of(check.correlation_single));
    result["R"] = check.equivalence->holds_together() ? check.equivalence->R : std::numeric_limits<double>::quiet_NaN();
  }
  result["complete"] = check.complete;
  result["unsolved"] = unsolved_fields(unsolved(check));
  return result;
}

/// WeightMargin of W; without a selection, W selects.
Fields margin_of_weights(const AttentionTask& task, const GivenArray& weights, const nb::object& select,
                         const std::vector<std::string>& norms, double time_limit, int threads, nb::object bar) {
  const RowMatrix W = to_matrix(weights, "W");
  std::optional<Selection> selection;
  if (!select.is_none()) selection = choose(task, select);
  Watch watch(nb::none(), std::move(bar));
  std::optional<WeightMargin> margin;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    CheckSettings settings{.time_limit = time_limit, .progress = watched(watch), .norms = {}};
    for (const std::string& name : norms) settings.add(Norm::parse(name));
    margin = margin_of(task, W, std::move(selection), settings, workspace.threads());
  }
  watch.finish();
  Fields result, rho, status, largest;
  for (const MarginShares& one : margin->shares) {
    const std::string norm = one.norm.name();
    rho[norm.c_str()] = one.rho.front();
    status[norm.c_str()] = std::string(name_of(one.status));
    largest[norm.c_str()] = one.margin;
  }
  result["smallest"] = margin->smallest;
  result["closest"] = nb::none();
  if (const auto& at = margin->closest) result["closest"] = nb::make_tuple(at->query, at->keep, at->drop);
  result["select"] = to_python(margin->selection.mask(task.longest()));
  result["rho"] = rho;
  result["rho_status"] = status;
  result["largest_margin"] = largest;
  result["interrupted"] = watch.interrupted();
  return result;
}

/// (fields, interrupted)
Answer<Fields, bool> check_task(const AttentionTask& task, const nb::object& select, double time_limit, int threads,
                                nb::object bar) {
  Selection selection = choose(task, select);
  Watch watch(nb::none(), std::move(bar));
  std::optional<Check> check;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    check = check_selection(task, std::move(selection), {.time_limit = time_limit, .progress = watched(watch)},
                            workspace.threads());
  }
  watch.finish();
  return nb::make_tuple(to_dict(task, *check), watch.interrupted());
}

/// `arrays` are those of a run's file; `norms` further ones. Returns (fields, interrupted).
Answer<Fields, bool> check_trained(const AttentionTask& given, const Fields& arrays,
                                   const std::vector<std::string>& norms, double threshold, double time_limit,
                                   int threads, nb::object bar) {
  const StoredRun run = run_from(to_named_arrays(arrays));
  with_place("run", [&] {
    require_run_of(given, run);
    if (run.heads > 1) refuse("is a run of {} heads; choose one with run.head(h)", run.heads);
  });
  const AttentionTask task = run.v.size() > 0 ? with_head(given, run.v) : given;
  Watch watch(nb::none(), std::move(bar));
  std::optional<Check> check;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    CheckSettings settings{.threshold = threshold, .time_limit = time_limit, .progress = watched(watch)};
    for (const std::string& name : norms) settings.add(Norm::parse(name));
    check = check_run(task, trace_of(run), settings, workspace.threads());
  }
  watch.finish();
  Fields result = to_dict(task, *check);
  add_shares(result, check->shares, check->implied);
  result["advice"] = check->advice;
  result["answer"] = answer_of(*check, run).text;
  return nb::make_tuple(result, watch.interrupted());
}

/// (selections tested, separable ones, locally optimal ones (m,q), interrupted)
Answer<Index, Index, nb::any, bool> enumerate_selections(const AttentionTask& task, Index limit, int threads,
                                                         nb::object bar) {
  Watch watch(nb::none(), std::move(bar));
  LocalOptima found;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    const auto progress = [&](const EnumerationProgress& now) {
      return watch.stop([&] { return nb::make_tuple(now.done); });
    };
    found = enumerate_local_optima(task, {.limit = limit, .progress = progress}, workspace.threads());
  }
  watch.finish();
  std::vector<Index> tokens;
  for (const Selection& selection : found.locally_optimal) {
    const std::vector<Index> firsts = selection.firsts();
    tokens.insert(tokens.end(), firsts.begin(), firsts.end());
  }
  const Array list = Array::own(std::move(tokens), {static_cast<Index>(found.locally_optimal.size()), task.queries()});
  return nb::make_tuple(found.selections, found.separable, to_python(list), watch.interrupted());
}

/// (arrays as in the file, complete, interrupted)
Answer<Fields, bool, bool> follow_path(const AttentionTask& task, const Fields& given, double time_limit, int threads,
                                       nb::object callback, nb::object bar) {
  PathSettings settings;
  settings.param = named<Parametrization>(nb::cast<std::string>(given["param"]), "param");
  settings.loss = named<Loss>(nb::cast<std::string>(given["loss"]), "loss");
  settings.joint = nb::cast<bool>(given["joint"]);
  settings.width = nb::cast<Index>(given["width"]);
  settings.radii = nb::cast<std::vector<double>>(given["radii"]);
  settings.head_radius = nb::cast<double>(given["head_radius"]);
  settings.starts = nb::cast<Index>(given["starts"]);
  settings.seed = nb::cast<std::uint64_t>(given["seed"]);
  settings.tolerance = nb::cast<double>(given["tolerance"]);
  Watch watch(std::move(callback), std::move(bar));
  settings.time_limit = time_limit;
  settings.progress = [&](const PathProgress& now) {  // the user's callback is called once per radius
    return now.iteration > 0 ? watch.interrupt() : watch.stop([&] { return nb::make_tuple(now.start, now.radius); });
  };
  RegularizationPath path;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    path = regularization_path(task, settings, workspace.threads());
  }
  watch.finish();
  const Fields arrays = path.points.empty() ? Fields() : to_python(path_arrays(path.points));
  return nb::make_tuple(arrays, path.complete, watch.interrupted());
}

/// (facts, counter-example or None, its extra arrays, interrupted)
Answer<Fields, std::optional<AttentionTask>, Fields, bool> test_one(const std::string& name, Index tasks,
                                                                    std::uint64_t seed, int threads, nb::object bar) {
  const auto list = find_claims(name);
  if (list.size() != 1) refuse("name = {}; must be one claim", name);
  Watch watch(nb::none(), std::move(bar));
  ClaimResult result;
  {
    const nb::gil_scoped_release unlocked;
    Workspace workspace(threads);
    result = test_claim(
        *list[0],
        {.tasks = tasks,
         .seed = seed,
         .progress = [&](const ClaimProgress& now) { return watch.stop([&] { return nb::make_tuple(now.done); }); }},
        workspace.threads());
  }
  watch.finish();
  Fields facts, figures;
  for (const ClaimFigure& figure : result.figures) figures[figure.label.c_str()] = figure.value;
  facts["tasks"] = result.tasks;
  facts["held"] = result.held;
  facts["worst"] = result.worst;
  facts["figures"] = figures;
  facts["words"] = result.counterexample ? result.counterexample->words : std::string();
  if (!result.counterexample) return nb::make_tuple(facts, nb::none(), Fields(), watch.interrupted());
  const auto& extras = result.counterexample->extras;
  return nb::make_tuple(facts, result.counterexample->task, to_python(NamedArrays(extras.begin(), extras.end())),
                        watch.interrupted());
}

Items list_claims(const std::string& name) {
  Items list;
  const auto add = [&](const Claim& claim) {
    list.append(nb::make_tuple(std::string(claim.name), std::string(claim.statement), std::string(claim.source),
                               std::string(claim.tested), std::string(claim.measure), claim.tasks));
  };
  if (!name.empty()) {
    for (const Claim* claim : find_claims(name)) add(*claim);
  } else {
    for (const Claim& claim : claims()) add(claim);
  }
  return list;
}

}  // namespace

void bind_theory(nb::module_& module) {
  module.def(
      "correlation",
      [](const GivenArray& A, const GivenArray& B) {
        const RowMatrix a = to_matrix(A, "A"), b = to_matrix(B, "B");
        if (a.rows() != b.rows() || a.cols() != b.cols()) {
          refuse("A has shape ({},{}) and B ({},{}); must be the same", a.rows(), a.cols(), b.rows(), b.cols());
        }
        return correlation(a, b);
      },
      nb::arg("A"), nb::arg("B"));
  module.def("margin", &margin_of_weights, nb::arg("task"), nb::arg("W"), nb::arg("select").none(), nb::arg("norms"),
             nb::arg("time_limit"), nb::arg("threads"), nb::arg("bar").none());
  module.def("check_selection", &check_task, nb::arg("task"), nb::arg("select").none(), nb::arg("time_limit"),
             nb::arg("threads"), nb::arg("bar").none(), "(fields, interrupted)");
  module.def("check_run", &check_trained, nb::arg("task"), nb::arg("arrays"), nb::arg("norms"), nb::arg("threshold"),
             nb::arg("time_limit"), nb::arg("threads"), nb::arg("bar").none(), "(fields, interrupted)");
  module.def("enumerate_local_optima", &enumerate_selections, nb::arg("task"), nb::arg("limit"), nb::arg("threads"),
             nb::arg("bar").none());
  module.def("path", &follow_path, nb::arg("task"), nb::arg("settings"), nb::arg("time_limit"), nb::arg("threads"),
             nb::arg("callback").none(), nb::arg("bar").none());
  module.def("test_claim", &test_one, nb::arg("name"), nb::arg("tasks"), nb::arg("seed"), nb::arg("threads"),
             nb::arg("bar").none());
  module.def("claims", &list_claims, nb::arg("name") = "",
             "(name, statement, source, tested, measure, tasks) of each.");
}

}  // namespace attsvm::python
