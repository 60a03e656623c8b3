// What the page calls: one function that takes a verb and JSON, and returns JSON. Every verb is a call of the library.
#include <emscripten/emscripten.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "attsvm/generate.h"
#include "attsvm/theory.h"
#include "base/refuse.h"
#include "report/conflict.h"
#include "task_json.h"
#include "theory/selections.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr double kPatience = 2;             // seconds that one solve may take
constexpr Index kMostSelections = 20'000;   // that are searched for local optima
constexpr Index kEndless = Index{1} << 52;  // steps of a run that the reader ends

/// The answer on screen, which training is compared with.
struct Shown {
  MarginProblem problem;
  MarginSolution solution;
};

/// What stays between calls.
struct Memory {
  Threads threads{1};
  MarginSolver solver{threads};
  std::optional<Shown> shown{};
  std::optional<AttentionTask> trained{};
  Index stop_at = 0;
  std::unique_ptr<Trainer> trainer{};
};

Memory& memory() {
  static Memory kept;
  return kept;
}

Json number_or_null(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }

/// The selection asked for: a list of tokens, "opt", or what the task itself says, else opt.
Selection selection_of(const AttentionTask& task, const Request& request) {
  const Json& select = request.at("select");
  if (select.is_array())
    return Selection::from_array(Array::own(select.get<std::vector<Index>>(), {static_cast<Index>(select.size())}),
                                 task.visible(), task.longest(), "select");
  return select.is_null() && task.select() ? *task.select() : optimal_tokens(task).selection;
}

Json rows_json(const MarginProblem& problem, const MarginSolution& solution) {
  Json rows = Json::array();
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      rows.push_back({{"query", group.query},
                      {"keep", problem.keep_token(group)},
                      {"drop", problem.drop_token(group, k)},
                      {"slack", number_or_null(solution.slack.size() > k ? solution.slack(k) : std::nan(""))},
                      {"dual", number_or_null(solution.dual(k))}});
    }
  }
  return rows;
}

Json kept_json(const AttentionTask& task, const Selection& selection) {
  Json kept = Json::array();
  for (Index i = 0; i < task.queries(); ++i)
    kept.push_back(std::vector<Index>(selection.kept(i).begin(), selection.kept(i).end()));
  return kept;
}

const char* verdict_of(const SelectionReport& report) {
  if (report.solution.status == MarginStatus::infeasible) return "infeasible";
  if (!report.separable) return "open";
  if (report.optimal) return "global";
  return report.locally_optimal ? "local" : "neither";
}

/// Solves the problem on screen. Returns what the theory says about its selection, for which the Frobenius answer is
/// needed anyway; null where it says nothing.
Json solve_shown(const SolveSettings& settings) {
  auto& [problem, solution] = *memory().shown;
  Json verdict;
  if (problem.task().head().kind != HeadKind::none && problem.selection().is_single()) {
    SelectionReport report =
        assess_selection(problem.task(), problem.selection(), {.time_limit = settings.time_limit}, memory().solver);
    verdict = verdict_of(report);
    if (settings.norm.is_frobenius()) {
      solution = std::move(report.solution);
      return verdict;
    }
  }
  solution = memory().solver.solve(problem, settings);
  return verdict;
}

/// {task, norm, select}: the SVM of a selection.
Json solve_task(const Request& request) {
  memory().shown.reset();  // what is refused must not leave the answer before it
  const AttentionTask task = request.task();
  const Selection selection = selection_of(task, request);
  const SolveSettings settings{.norm = Norm::parse(request.at("norm").get<std::string>()), .time_limit = kPatience};
  memory().shown.emplace(Shown{MarginProblem::attention(task, selection), {}});
  auto& [problem, solution] = *memory().shown;
  const Json verdict = solve_shown(settings);
  const bool infeasible = solution.status == MarginStatus::infeasible;
  return {
      {"status", name_of(solution.status)},
      {"verdict", verdict},
      {"scores", task.head().kind == HeadKind::none ? Json(nullptr) : Json(head_values(task))},
      {"norm", solution.norm.name()},
      {"kept", kept_json(task, selection)},
      {"method", solution.method},
      {"objective", infeasible ? Json(nullptr) : number_or_null(solution.objective)},
      {"dual_objective", infeasible ? Json(nullptr) : number_or_null(solution.dual_objective)},
      {"gap", infeasible ? Json(nullptr) : number_or_null(solution.gap)},
      {"support", infeasible ? Json(nullptr) : Json(solution.support)},
      {"rank", infeasible ? Json(nullptr) : Json(numerical_rank(solution.W))},
      {"residual", infeasible ? Json(solution.residual) : Json(nullptr)},
      {"W", to_json(solution.W)},
      {"rows", rows_json(problem, solution)},
      {"conflict", infeasible ? conflict_json(problem, stored(problem, solution, settings.tolerance)) : Json(nullptr)}};
}

/// {task}: every selection that training can end at.
Json find_local_optima(const Request& request) {
  const AttentionTask task = request.task();
  const LocalOptima found =
      enumerate_local_optima(task, {.limit = kMostSelections, .time_limit = kPatience}, memory().threads);
  Json list = Json::array();
  for (const Selection& one : found.locally_optimal) list.push_back(one.firsts());
  return {{"selections", found.selections}, {"complete", found.complete}, {"locally_optimal", std::move(list)}};
}

/// The present point of the run, beside the SVM on screen.
Json point_json(const TrainedRun& run) {
  const Memory& here = memory();
  const AttentionMap map = attention_map(*here.trained, run.W, memory().threads);
  Json attention = Json::array();
  for (Index i = 0; i < here.trained->queries(); ++i) {
    Json weights = Json::array();
    for (const Index t : here.trained->seen(i)) weights.push_back(std::exp(map.log_weights(i, t)));
    attention.push_back(std::move(weights));
  }
  Json json{
      {"step", run.steps},        {"loss", number_or_null(run.loss)},  {"norm", run.norm},       {"W", to_json(run.W)},
      {"selected", map.selected}, {"attention", std::move(attention)}, {"correlation", nullptr}, {"rho", nullptr}};
  const auto& shown = here.shown;
  if (shown && shown->solution.status == MarginStatus::optimal && shown->solution.W.rows() == run.W.rows() &&
      shown->solution.W.cols() == run.W.cols()) {
    json["correlation"] = number_or_null(correlation(run.W, shown->solution.W));
    json["rho"] = number_or_null(margin_share(shown->problem, shown->solution, run.W));
  }
  return json;
}

template <class Value>
void take(const Request& request, const char* name, Value& value) {
  if (request.has(name)) value = request.at(name).get<Value>();
}

template <class Kind>
void take_named(const Request& request, const char* name, Kind& value) {
  if (!request.has(name)) return;
  const auto text = request.at(name).get<std::string>();
  const auto named = value_named<Kind>(text);
  if (!named) refuse("{}: {} is not known", name, text);
  value = *named;
}

/// {task, param, optimizer, step, loss, joint, seed, W?, v?}: a new run.
Json start_training(const Request& request) {
  Memory& here = memory();
  here.trainer.reset();
  here.trained.emplace(request.task());
  here.stop_at = 0;
  TrainSettings settings{.steps = kEndless};
  take_named(request, "param", settings.param);
  take_named(request, "loss", settings.loss);
  take(request, "step", settings.step);
  take(request, "joint", settings.joint);
  take(request, "seed", settings.seed);
  if (const std::string wrong = set_optimizer(request.at("optimizer").get<std::string>(), settings); !wrong.empty())
    refuse("optimizer: {}", wrong);
  Start start;
  if (request.has("W")) start.W = request.matrix(request.at("W"));
  if (request.has("v")) start.v = request.matrix(request.at("v")).col(0);
  settings.progress = [&here](const TrainProgress& progress) { return progress.step >= here.stop_at; };
  here.trainer = std::make_unique<Trainer>(*here.trained, settings, here.threads, start);
  here.trainer->run([](const Record&) {});
  const auto implied = implied_norm(settings);
  Json json = point_json(here.trainer->result());
  json["implied"] = implied ? Json{{"norm", implied->norm.name()}, {"proven", implied->proven}} : Json(nullptr);
  return json;
}

/// {until}: trains on to this step, and tells where the run is.
Json advance_training(const Request& request) {
  Memory& here = memory();
  if (!here.trainer) refuse("no run has been started");
  here.stop_at = request.at("until").get<Index>();
  const TrainStop stop = here.trainer->run([](const Record&) {});
  Json json = point_json(here.trainer->result());
  json["stop"] = stop == TrainStop::asked ? Json(nullptr) : Json(name_of(stop));
  return json;
}

/// {W}: correlation and ρ of the points of a run with the SVM on screen, which has changed.
Json compare_points(const Request& request) {
  const auto& shown = memory().shown;
  Json correlations = Json::array(), shares = Json::array();
  for (const Json& one : request.at("W")) {
    const RowMatrix W = request.matrix(one);
    const bool comparable = shown && shown->solution.status == MarginStatus::optimal &&
                            shown->solution.W.rows() == W.rows() && shown->solution.W.cols() == W.cols();
    correlations.push_back(comparable ? number_or_null(correlation(W, shown->solution.W)) : Json(nullptr));
    shares.push_back(comparable ? number_or_null(margin_share(shown->problem, shown->solution, W)) : Json(nullptr));
  }
  return {{"correlation", std::move(correlations)}, {"rho", std::move(shares)}};
}

/// {kind, n, T, d, seed, …}: a task as `attsvm generate` draws it.
Json draw_task(const Request& request) {
  const auto kind = request.at("kind").get<std::string>();
  for (const RecipeKind& known : recipe_kinds()) {
    if (known.name != kind) continue;
    Recipe recipe = known.recipe;
    take(request, "n", recipe.n);
    take(request, "T", recipe.T);
    take(request, "d", recipe.d);
    take(request, "C", recipe.c);
    std::uint64_t seed = 0;
    take(request, "seed", seed);
    return to_json(generate(recipe, seed).task);
  }
  refuse("kind {} is not known", kind);
}

Json call(const std::string& verb, const Request& request) {
  static const std::map<std::string, Json (*)(const Request&)> kVerbs{
      {"draw", draw_task},       {"solve", solve_task},         {"local", find_local_optima},
      {"start", start_training}, {"advance", advance_training}, {"compare", compare_points}};
  return kVerbs.at(verb)(request);
}

}  // namespace
}  // namespace attsvm::internal

extern "C" {

/// The answer, or {"error": words}; valid until the next call.
EMSCRIPTEN_KEEPALIVE const char* attsvm_call(const char* verb, const char* words, const double* numbers) {
  using attsvm::internal::Json;
  static std::string answer;
  try {
    answer = attsvm::internal::call(verb, {Json::parse(words), numbers}).dump();
  } catch (const attsvm::InputError& error) {
    answer = Json{{"error", error.what()}}.dump();
  } catch (const std::exception& error) {
    answer = Json{{"error", std::string("internal error: ") + error.what()}}.dump();
  }
  return answer.c_str();
}
}
