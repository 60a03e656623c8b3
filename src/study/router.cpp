#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attsvm/selector.h"
#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/training.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr Index kRouterRuns = 200, kRouterSteps = 1000;
constexpr std::array kRouterSelectors{Selector::soft, Selector::gumbel, Selector::dirichlet};
constexpr std::array kRouterBetas{0.0, 1e-3, 1e-2, 1e-1, 1.0};
constexpr std::array kRouterTemperatures{0.1, 1.0, 10.0, 100.0};
constexpr double kRouterCold = 0.1;
constexpr double kRouterSharp = 0.01;  // entropy, as a share of that of equal attention

/// One way to train.
struct Route {
  Selector selector = Selector::soft;
  double beta = 0;
  std::array<double, 2> temperature{1, 1};

  std::string words() const {
    std::string text(name_of(selector));
    if (beta > 0) text += fmt::format(", entropy {:g}", beta);
    if (temperature[0] != temperature[1]) {
      text += fmt::format(", temperature {:g} to {:g}", temperature[0], temperature[1]);
    } else if (temperature[0] != 1) {
      text += fmt::format(", temperature {:g}", temperature[0]);
    }
    return text;
  }
  TrainSettings training() const {
    return {
        .steps = kRouterSteps, .selector = selector, .entropy = beta, .temperature = temperature, .init = Init::zero};
  }
};

/// Every selector with every entropy, at every constant temperature, and cooled from every one.
std::vector<Route> all_routes() {
  std::vector<Route> routes;
  for (const Selector selector : kRouterSelectors) {
    for (const double beta : kRouterBetas) routes.push_back({selector, beta});
    for (const double first : kRouterTemperatures) {
      if (first != 1) routes.push_back({selector, 0, {first, first}});
      if (first != kRouterCold) routes.push_back({selector, 0, {first, kRouterCold}});
    }
  }
  return routes;
}

StudyRow route_row(const AttentionTask& task, const TrainedRun& run, const TrainedRun& ordinary, Threads& alone) {
  const AttentionMap map = attention_map(task, run.W, alone);
  const Check check = check_selection(task, Selection::single(map.selected), {}, alone);
  VerifyingSolver solver(alone);
  const MarginSolution svm = solver.solve(MarginProblem::attention(task, check.selection));
  if (!solver.verified()) return StudyRow::rejected(kNotVerified);
  const double even = mean_entropy(task, RowMatrix::Zero(task.key_size(), task.query_size()), alone);
  const std::vector<double> entropy =
      along(run, [&](const Record& record) { return mean_entropy(task, record.W, alone); });
  const auto sharp = std::find_if(entropy.begin(), entropy.end(), [&](double h) { return h <= kRouterSharp * even; });
  Json result{{"verdict", name_of(check.verdict)},
              {"same", map.selected == attention_map(task, ordinary.W, alone).selected ? 1 : 0},
              {"accuracy", hard_selection(task, run.head, Loss::logistic, map).accuracy},
              {"norm", run.norm},
              {"entropy", json_list(entropy)}};
  if (sharp != entropy.end()) result["sharp"] = run.records[static_cast<std::size_t>(sharp - entropy.begin())].step;
  if (svm.status == MarginStatus::optimal) {
    std::vector<double> distance = correlations(run, svm.W);
    for (double& one : distance) one = 1 - one;
    result["distance"] = distance.back();
    result["distances"] = json_list(distance);
  }
  return {"", std::move(result)};
}

class RouterStudy final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "router",
            .title = "Selectors, entropy and temperature",
            .setting = fmt::format(
                "Random tasks (5,5,6), linear head, logistic loss, W from zero by {} normalized gradient steps of 0.1: "
                "softmax, Gumbel draws with straight-through gradients, Dirichlet weights of concentration 10; entropy "
                "penalty {:g}; temperature {:g}, constant or cooled geometrically to {:g}; {} tasks each, the same "
                "ones. At the end every run is judged as ordinary attention.",
                kRouterSteps, fmt::join(kRouterBetas, ", "), fmt::join(kRouterTemperatures, ", "), kRouterCold,
                kRouterRuns),
            .paper =
                "Our own. Expected: an entropy penalty speeds divergence up and leaves the direction; noise helps to "
                "leave local optima.",
            .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const Route& route : all_routes()) {
      cells.push_back({.name = route.words(),
                       .settings = cell_settings({{"n", 5}, {"T", 5}, {"d", 6}}, route.training()),
                       .runs = kRouterRuns,
                       .cost = kRouterSteps * (route.selector == Selector::dirichlet ? 40.0 : 15.0)});
    }
    return cells;
  }

  Index batch() const override { return 25; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const std::vector<AttentionTask> tasks = draw_tasks(recipe_of(cell.settings), draws, threads);
    const std::vector<TrainedRun> ordinary = train_many(tasks, Route{}.training(), threads);
    TrainSettings training = recorded(cell.settings, curve_steps);
    training.seed = draws.seed;
    training.instance = draws.instance(0);
    const std::vector<TrainedRun> runs = train_many(tasks, training, threads);
    return make_rows(draws.count, threads,
                     [&](std::size_t k, Threads& alone) { return route_row(tasks[k], runs[k], ordinary[k], alone); });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"selector", "how steps take attention from logits"},
                             {"entropy", "weight of the entropy"},
                             {"first_temperature", "of the run"},
                             {"last_temperature", "of the run"},
                             {"runs", "whose means these are"},
                             {"global", "share of runs that select the optimal tokens"},
                             {"local", "share that select other, locally optimal tokens"},
                             {"same", "share that select as the softmax without entropy at temperature 1"},
                             {"accuracy", "mean share of selected tokens with the label's sign"},
                             {"distance", "median 1 − correlation with the SVM of the run's own tokens"},
                             {"norm", "mean ‖W‖_F at the end"},
                             {"sharp",
                              "median step at which entropy is 1 % of that of equal attention, where it gets "
                              "there"},
                             {"entropy_end", "mean entropy at the end"}};
    const std::vector<Route> routes = all_routes();
    for (std::size_t k = 0; k < cells.size(); ++k) add_row(routes[k], cells[k], summary.table);
    draw(routes, cells, summary);
    explain(summary);
    return summary;
  }

 private:
  static double median_of(const std::vector<const Json*>& results, const char* name) {
    std::vector<double> list;
    for (const Json* result : results) {
      if (result->contains(name)) list.push_back(result->at(name));
    }
    if (list.empty()) return NAN;
    std::sort(list.begin(), list.end());
    return (list[(list.size() - 1) / 2] + list[list.size() / 2]) / 2;
  }

  static void add_row(const Route& route, const CellRows& rows, Table& table) {
    const auto results = rows.results();
    const auto share = [&](const char* verdict) {
      return static_cast<double>(std::count_if(results.begin(), results.end(),
                                               [&](const Json* result) { return result->at("verdict") == verdict; })) /
             static_cast<double>(results.size());
    };
    const auto mean = [&](const char* name) { return sample_of(results, name).mean; };
    const double left = results.empty() ? NAN : mean_curve(results, "entropy").mean.back();
    table.rows.push_back(
        Json::array({name_of(route.selector), route.beta, route.temperature[0], route.temperature[1], results.size(),
                     share("global"), share("local"), mean("same"), mean("accuracy"), median_of(results, "distance"),
                     mean("norm"), median_of(results, "sharp"), left}));
  }

  /// Shares of global runs of the rows for which x() gives a place, with 95 % Wilson intervals.
  template <class Place>
  static Curve shares(const Table& table, std::string label, int style, Place x) {
    Curve curve{.label = std::move(label), .mark = Mark::bars, .style = style, .x = {}, .y = {}};
    std::vector<std::pair<double, const Json*>> found;
    for (const Json& row : table.rows) {
      if (const double at = x(row); !std::isnan(at) && row.at(4) != 0) found.emplace_back(at, &row);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [at, of] : found) {
      const Json& row = *of;
      const Interval interval = wilson(row.at(5), row.at(4));
      curve.x.push_back(at);
      curve.y.push_back(row.at(5));
      curve.low.push_back(interval.low);
      curve.high.push_back(interval.high);
    }
    return curve;
  }

  static void draw(const std::vector<Route>& routes, const std::vector<CellRows>& cells, Summary& summary) {
    constexpr double kWithout = 1e-4;  // where the logarithmic axis shows no entropy
    Panel entropy{.title = "Entropy penalty",
                  .x_label = "weight of the entropy (leftmost: 0)",
                  .y_label = "share of global runs",
                  .log_x = true,
                  .x_range = {{5e-5, 2}},
                  .y_range = {{0, 1}}};
    Panel heat{.title = "Temperature",
               .x_label = "first temperature",
               .y_label = "share of global runs",
               .log_x = true,
               .x_range = {{0.05, 200}},
               .y_range = {{0, 1}}};
    int style = 0;
    for (const Selector selector : kRouterSelectors) {
      const std::string name(name_of(selector));
      entropy.curves.push_back(shares(summary.table, name, style, [&](const Json& row) -> double {
        if (row.at(0) != name || row.at(2) != 1 || row.at(3) != 1) return NAN;
        return row.at(1) == 0 ? kWithout : row.at(1).get<double>();
      }));
      heat.curves.push_back(shares(summary.table, name + ", constant", style, [&](const Json& row) {
        return row.at(0) == name && row.at(1) == 0 && row.at(2) == row.at(3) ? row.at(2).get<double>() : NAN;
      }));
      heat.curves.push_back(shares(summary.table, name + ", cooled", style + 3, [&](const Json& row) {
        return row.at(0) == name && row.at(2) != row.at(3) ? row.at(2).get<double>() : NAN;
      }));
      ++style;
    }
    Panel spread = over_steps("Entropy of the attention", "mean entropy", kRouterSteps);
    spread.log_y = true;
    spread.y_range = {{1e-6, 3}};
    Panel angle = distance_over_steps("1 − correlation with the own SVM", kRouterSteps);
    style = 0;
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const Route& route = routes[k];
      const bool shown =
          (route.beta == 0 || route.beta == 0.1) && route.temperature[0] == 1 && route.temperature[1] == 1;
      const auto results = cells[k].results();
      if (!shown || results.empty()) continue;
      std::vector<const Json*> solved;
      for (const Json* result : results) {
        if (result->contains("distances")) solved.push_back(result);
      }
      const std::vector<Index> steps = curve_steps(kRouterSteps);
      spread.curves.push_back(mean_over_steps(mean_curve(results, "entropy"), steps, route.words(), style));
      if (!solved.empty())
        angle.curves.push_back(mean_over_steps(mean_curve(solved, "distances"), steps, route.words(), style));
      ++style;
    }
    summary.figure = {.title = "Selectors, entropy and temperature",
                      .caption =
                          "Share of runs that end at the optimal tokens, with 95 % Wilson intervals (a, b); means over "
                          "runs of the softmax's entropy and of 1 − correlation with the SVM of the run's own tokens, "
                          "both without draws and at temperature 1 (c, d).",
                      .columns = 2,
                      .panels = {std::move(entropy), std::move(heat), std::move(spread), std::move(angle)}};
  }

  static void explain(Summary& summary) {
    std::vector<std::string> penalties, kinds, heats;
    for (const Json& row : summary.table.rows) {
      if (row.at(4) == 0) return;
      const double beta = row.at(1), first = row.at(2), last = row.at(3);
      const auto percent = [&](int column) { return 100 * row.at(static_cast<std::size_t>(column)).get<double>(); };
      const double distance = row.at(9).is_number() ? row.at(9).get<double>() : NAN;
      if (row.at(0) == "soft" && first == 1 && last == 1)
        penalties.push_back(
            fmt::format("{:g}: {:.0f} %, {:.0f} % of tokens right, {:.1e}", beta, percent(5), percent(8), distance));
      if (beta == 0 && first == 1 && last == 1)
        kinds.push_back(fmt::format("{}: {:.0f} % global, {:.0f} % as the softmax, 1 − correlation {:.1e}",
                                    row.at(0).get<std::string>(), percent(5), percent(7), distance));
      if (beta == 0 && first != last)
        heats.push_back(fmt::format("{} from {:g}: {:.0f} %", row.at(0).get<std::string>(), first, percent(5)));
    }
    summary.findings = {
        {.paper = "An entropy penalty leaves the direction.",
         .ours = fmt::format("It leads to the SVM of the tokens that it selects, and it selects others. Share of "
                             "global runs, selected tokens with the label's sign, and median 1 − correlation by its "
                             "weight, softmax: {}.",
                             fmt::join(penalties, "; ")),
         .why = "Far from zero the penalty pushes every logit away from the largest one, whatever the scores are: it "
                "locks the selection that is ahead."},
        {.paper = "Noise helps to leave local optima.",
         .ours = fmt::format("Without entropy, at temperature 1: {}.", fmt::join(kinds, "; ")),
         .why = ""},
        {.paper = "Cooling: noise first, sharp selections later.",
         .ours = fmt::format("Share of global runs, cooled to {:g}: {}.", kRouterCold, fmt::join(heats, "; ")),
         .why = ""}};
  }
};

}  // namespace

std::unique_ptr<Study> router_study() { return std::make_unique<RouterStudy>(); }

}  // namespace attsvm::internal
