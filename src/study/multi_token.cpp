#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/predictions.h"
#include "study/training.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

constexpr std::array<Index, 4> kTokenDimensions{4, 6, 8, 10};
constexpr std::array<double, 4> kPublishedRates{0.21, 0.10, 0.05, 0.02};  // of the published code, for time estimates
constexpr double kGone = 1e-6;
constexpr const char* kAllPositive = "all labels +1 (not trained)";

class MultiToken final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "multi-token",
            .title = "Nonlinear heads keep several tokens",
            .setting =
                "Cross attention, n = 3, T = 4, d = 4, 6, 8, 10, one-hidden-layer ReLU head with random B, random "
                "labels; W trained from a uniform random start with 2,001 normalized gradient steps of 0.1. A run "
                "counts when no softmax weight lies in (1e-6, 1e-3], at least one is at most 1e-6, some label is −1 "
                "and both SVMs have solutions; 500 such runs for every d. Tokens with weight at least 1e-3 are kept.",
            .paper =
                "Transformers as Support Vector Machines (arXiv 2308.16898), the figures of nonlinear heads and their "
                "SVM equivalence: "
                "W is close to W_fin + R W^mm, closer than to the direction W^mm of the Gen-SVM alone or to the SVM "
                "of the single largest token."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (std::size_t k = 0; k < kTokenDimensions.size(); ++k) {
      cells.push_back({.name = fmt::format("d={}", kTokenDimensions[k]),
                       .settings = cell_settings(
                           {{"n", 3}, {"T", 4}, {"d", kTokenDimensions[k]}, {"kept", kKept}, {"gone", kGone}},
                           {.steps = 2001, .epsilon = 0x1p-52, .arithmetic = Arithmetic::plain, .init = Init::random}),
                       .runs = 500,
                       .cost = 2000 * 1.5,
                       .acceptance = kPublishedRates[k]});
    }
    return cells;
  }

  Index batch() const override { return 256; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    Recipe recipe = recipe_of(cell.settings);
    recipe.head = HeadKind::hidden;
    const std::vector<AttentionTask> tasks = draw_tasks(recipe, draws, threads);
    TrainSettings training = recorded(cell.settings, curve_steps);
    training.seed = draws.seed;
    // Row by row instead of train_many: most draws are rejected, many of them before training because of their labels.
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      TrainSettings mine = training;
      mine.instance = draws.instance(k);
      return run_one(tasks[k], mine, alone);
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"d", "size of tokens and queries"},
                             {"arithmetic", "plain doubles as published, or exact directions on the same draws"},
                             kStepColumn,
                             {"runs", "accepted runs"},
                             {"draws", "draws, rejected ones included"}};
    for (const Prediction& one : kPredictions) {
      summary.table.columns.push_back({one.name, one.meaning});
      summary.table.columns.push_back({fmt::format("{}_error", one.name), "its standard error"});
    }
    for (const CellRows& rows : cells) {
      for (const char* arithmetic : {"plain", "exact"}) add_rows(rows, arithmetic, summary.table);
    }
    draw(cells, summary.figure);
    for (const CellRows& rows : cells) explain(rows, summary.findings);
    return summary;
  }

 private:
  /// Why a trained run is rejected; empty if it counts.
  static std::string unfit(const RowMatrix& log_weights) {
    bool some_gone = false, between = false;
    for (const double log_weight : log_weights.reshaped()) {
      some_gone = some_gone || log_weight <= std::log(kGone);
      between = between || (log_weight > std::log(kGone) && log_weight <= std::log(kKept));
    }
    if (between) return "a softmax weight in (1e-6, 1e-3]";
    return some_gone ? "" : "no softmax weight at most 1e-6";
  }

  static StudyRow run_one(const AttentionTask& task, TrainSettings training, Threads& alone) {
    bool negative = false;
    for (Index i = 0; i < task.queries(); ++i) negative = negative || task.label(i) < 0;
    if (!negative) return StudyRow::rejected(kAllPositive);
    const TrainedRun plain = train(task, training, alone);
    const AttentionMap map = attention_map(task, plain.W, alone);
    if (std::string why = unfit(map.log_weights); !why.empty()) return StudyRow::rejected(std::move(why));
    StudyRow row;
    row.rejection = compare(task, plain, map, "plain", row.result, alone);
    if (!row.accepted()) return StudyRow::rejected(row.rejection);
    training.arithmetic = Arithmetic::exact;
    training.epsilon = 0;
    const TrainedRun exact = train(task, training, alone);
    const AttentionMap exact_map = attention_map(task, exact.W, alone);
    row.result["exact_fit"] =
        unfit(exact_map.log_weights).empty() && compare(task, exact, exact_map, "exact", row.result, alone).empty();
    return row;
  }

  /// Adds the correlations along a run; returns why there are none.
  static std::string compare(const AttentionTask& task, const TrainedRun& run, const AttentionMap& map,
                             const std::string& arithmetic, Json& result, Threads& alone) {
    const Selection kept = kept_tokens(task, map.log_weights, kKept);
    MarginSolver solver(alone);
    const Equivalence fit = fit_equivalence(task, kept, run.W, map.log_weights, {}, solver);
    if (!fit.holds_together()) return "Gen-SVM infeasible";
    if (fit.single.status != MarginStatus::optimal) return "one-token SVM infeasible";
    if (!add_distances(task, kept, map, fit, run, arithmetic + "_", result)) return kNotVerified;
    double masked = -INFINITY;
    Index size = 0;
    for (Index i = 0; i < task.queries(); ++i) {
      for (const Index t : task.seen(i)) {
        if (kept.keeps(i, t)) {
          ++size;
        } else {
          masked = std::max(masked, map.log_weights(i, t));
        }
      }
    }
    result[arithmetic + "_log_masked"] = masked / std::log(10.0);
    result[arithmetic + "_kept"] = size;
    result[arithmetic + "_R"] = fit.R;
    return "";
  }

  /// Draws that were trained: all but those whose labels rule them out.
  static double trained(const CellRows& rows) {
    double count = 0;
    for (const StudyRow& row : rows.rows) count += row.rejection == kAllPositive ? 0 : 1;
    return count;
  }

  static std::vector<const Json*> fitting(const CellRows& rows, const std::string& arithmetic) {
    std::vector<const Json*> list;
    for (const Json* result : rows.results()) {
      if (arithmetic == "plain" || result->at("exact_fit").get<bool>()) list.push_back(result);
    }
    return list;
  }

  /// Mean 1 − correlation with a prediction over the runs that fit.
  static MeanCurve mean_distance(const CellRows& rows, const std::string& arithmetic, const std::string& prediction) {
    return mean_curve(fitting(rows, arithmetic), fmt::format("{}_{}", arithmetic, prediction));
  }

  static void add_rows(const CellRows& rows, const std::string& arithmetic, Table& table) {
    const auto results = fitting(rows, arithmetic);
    if (results.empty()) return;
    const auto steps = curve_steps(rows.cell.settings.at("steps"));
    std::array<MeanCurve, kPredictions.size()> curves;
    for (std::size_t p = 0; p < curves.size(); ++p) curves[p] = mean_distance(rows, arithmetic, kPredictions[p].name);
    for (std::size_t k = 0; k < steps.size(); ++k) {
      Json row = Json::array({rows.cell.settings.at("d"), arithmetic, steps[k], results.size(), rows.rows.size()});
      for (const MeanCurve& curve : curves) {
        row.push_back(curve.mean[k]);
        row.push_back((curve.high[k] - curve.mean[k]) / std::sqrt(static_cast<double>(results.size())));
      }
      table.rows.push_back(std::move(row));
    }
  }

  static void draw(const std::vector<CellRows>& cells, Figure& figure) {
    figure = {.title = "Nonlinear heads keep several tokens: which SVM predicts W?",
              .caption =
                  "Mean 1 − correlation of W with each prediction over accepted runs, plain arithmetic, as published "
                  "(a to c), with exact directions on the same draws (e), and for every run against the largest weight "
                  "among dropped tokens (d, d = 4 to 10). (f) share of trained draws that count, bars are 95 % "
                  "Wilson intervals; the published pictures do not say how many were rejected.",
              .columns = 3};
    const auto distances = [&](const std::string& title, const std::string& arithmetic, const std::string& measure) {
      Panel panel = distance_over_steps(title, 2001);
      panel.y_range = {1e-3, 1};
      int style = 0;
      for (const CellRows& rows : cells) {
        const Json& s = rows.cell.settings;
        panel.curves.push_back(mean_over_steps(mean_distance(rows, arithmetic, measure), curve_steps(s.at("steps")),
                                               fmt::format("d = {}", s.at("d").get<Index>()), style++));
      }
      return panel;
    };
    for (const Prediction& one : kPredictions) figure.panels.push_back(distances(one.label, "plain", one.name));
    Panel scatter{.title = "Every run",
                  .x_label = "largest weight of a dropped token",
                  .y_label = "1 − correlation",
                  .log_x = true,
                  .log_y = true};
    Panel rate{.title = "Accepted runs",
               .x_label = kSizeLabel,
               .y_label = "percent of trained draws",
               .x_range = {{3.5, 10.5}}};
    Curve ours{.label = "here", .mark = Mark::bars, .style = 0},
        published{.label = "published code, 2,600 seeds", .mark = Mark::points, .style = 1};
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const CellRows& rows = cells[k];
      const double draws = trained(rows);
      if (draws == 0) continue;
      const double d = rows.cell.settings.at("d"), share = static_cast<double>(rows.accepted()) / draws;
      const Interval interval = wilson(share, draws);
      ours.x.push_back(d);
      ours.y.push_back(100 * share);
      ours.low.push_back(100 * interval.low);
      ours.high.push_back(100 * interval.high);
      published.x.push_back(d);
      published.y.push_back(100 * kPublishedRates[k]);
      Curve points{.label = fmt::format("d = {}", d), .mark = Mark::points, .style = static_cast<int>(k)};
      for (const Json* result : rows.results()) {
        points.x.push_back(std::pow(10.0, result->at("plain_log_masked").get<double>()));
        points.y.push_back(result->at("plain_equivalence_final"));
      }
      scatter.curves.push_back(std::move(points));
    }
    rate.curves = {std::move(ours), std::move(published)};
    figure.panels.push_back(std::move(scatter));
    figure.panels.push_back(distances("W_{fin} + R W^{mm}, exact", "exact", "equivalence"));
    figure.panels.push_back(std::move(rate));
  }

  static void explain(const CellRows& rows, std::vector<Finding>& findings) {
    constexpr std::array kPublished{
        "0.035 / 0.069 / 0.152, 21 % of seeds accepted", "0.015 / 0.045 / 0.148, 10 % of seeds accepted",
        "0.012 / 0.015 / 0.149, 5 % of seeds accepted", "0.005 / 0.006 / 0.135, 2 % of seeds accepted"};
    const Index d = rows.cell.settings.at("d");
    const auto place = static_cast<std::size_t>(std::find(kTokenDimensions.begin(), kTokenDimensions.end(), d) -
                                                kTokenDimensions.begin());
    std::string ours;
    for (const std::string arithmetic : {"plain", "exact"}) {
      const auto results = fitting(rows, arithmetic);
      ours += ours.empty() ? "Plain arithmetic " : "; exact ";
      std::vector<std::string> means;
      for (const Prediction& one : kPredictions) {
        const Sample sample = sample_of(results, fmt::format("{}_{}_final", arithmetic, one.name));
        means.push_back(sample.count == 0   ? "–"
                        : sample.count == 1 ? fmt::format("{:.4f}", sample.mean)
                                            : fmt::format("{:.4f} ± {:.4f}", sample.mean, sample.error()));
      }
      ours += fmt::format("{} ({} runs)", fmt::join(means, " / "), results.size());
    }
    findings.push_back(
        {.paper = fmt::format("d = {}: 1 − correlation with W_fin + R W^mm / W^mm / one token: {} (published code).", d,
                              kPublished.at(place)),
         .ours = fmt::format("{}; {:.1f} % of {} trained draws accepted (± is the standard error).", ours,
                             100 * static_cast<double>(rows.accepted()) / trained(rows), trained(rows)),
         .why = place == 0 ? "The published pictures reject silently: most trained runs still have a weight between "
                             "1e-6 and 1e-3, and others have dropped no token."
                           : ""});
  }
};

}  // namespace

std::unique_ptr<Study> multi_token_study() { return std::make_unique<MultiToken>(); }

}  // namespace attsvm::internal
