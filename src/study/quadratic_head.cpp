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

constexpr std::array kLambdas{0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0};

/// The weights s that maximise scoreᵀs − λ‖s‖² over the simplex: the best attention for orthonormal tokens.
std::vector<double> best_weights(std::vector<double> scores, double lambda) {
  std::vector<double> sorted = scores;
  std::sort(sorted.rbegin(), sorted.rend());
  if (lambda == 0) {
    for (double& s : scores) s = s == sorted.front() ? 1 : 0;
    return scores;
  }
  double sum = 0, threshold = 0;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    sum += sorted[k];
    const double candidate = (sum - 2 * lambda) / static_cast<double>(k + 1);
    if (sorted[k] > candidate) threshold = candidate;
  }
  for (double& s : scores) s = std::max(0.0, (s - threshold) / (2 * lambda));
  return scores;
}

class QuadraticHead final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "quadratic-head",
            .title = "A concave head spreads attention over several tokens",
            .setting =
                "Cross attention, n = 4, T = 6, d = 10, the tokens of a sequence orthonormal, head v'x − λ‖x‖² with λ "
                "from 0 to 1, labels +1; W trained from zero with 20,000 plain gradient steps of 5 (normalized steps "
                "bounce around an interior equilibrium); 100 tasks for every λ. Tokens with weight at least 1e-3 are "
                "kept. Sizes and λ are ours.",
            .paper =
                "Transformers as Support Vector Machines (arXiv 2308.16898), the section on nonlinear heads; sizes are "
                "ours: the number "
                "of tokens that attention keeps grows with λ, and W is predicted by W_fin + R W^mm of the kept sets."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    cells.reserve(kLambdas.size());
    for (const double lambda : kLambdas) {
      cells.push_back(
          {.name = fmt::format("lambda={}", lambda),
           .settings = cell_settings({{"n", 4}, {"T", 6}, {"d", 10}, {"lambda", lambda}, {"kept", kKept}},
                                     {.optimizer = Optimizer::gd, .step = 5, .steps = 20000, .init = Init::zero}),
           .runs = 100,
           .cost = 20000 * 2.5});
    }
    return cells;
  }

  Index batch() const override { return 25; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    Recipe recipe = recipe_of(cell.settings);
    recipe.law = Law::orthonormal;
    recipe.head = HeadKind::quadratic;
    recipe.lambda = cell.settings.at("lambda");
    return train_and_judge(recipe, recorded(cell.settings, curve_steps), draws, threads, judge);
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"lambda", "weight of the quadratic term"},
                             {"runs", "tasks trained"},
                             {"kept", "mean number of tokens kept per query"},
                             {"kept_sd", "its standard deviation over tasks"},
                             {"kept_best", "mean number of tokens with weight in the head's best mixture"},
                             {"distance", "mean over tasks of the largest difference from the best mixture's weights"}};
    for (const Prediction& one : kPredictions) summary.table.columns.push_back({one.name, one.meaning});
    summary.table.columns.push_back({"equivalence_runs", "tasks in which all of these exist"});
    for (const CellRows& rows : cells) {
      const auto results = rows.results();
      const Sample kept = sample_of(results, "kept");
      Json row = Json::array({rows.cell.settings.at("lambda"), results.size(), kept.mean, kept.sd,
                              sample_of(results, "kept_best").mean, sample_of(results, "distance").mean});
      Index compared = 0;
      for (const Prediction& one : kPredictions) {
        const Sample sample = sample_of(results, fmt::format("{}_final", one.name));
        row.push_back(sample.mean);
        compared = sample.count;
      }
      row.push_back(compared);
      summary.table.rows.push_back(std::move(row));
    }
    draw(cells, summary);
    explain(summary);
    return summary;
  }

 private:
  static StudyRow judge(const AttentionTask& task, const TrainedRun& run, Threads& alone) {
    const AttentionMap map = attention_map(task, run.W, alone);
    const Selection kept = kept_tokens(task, map.log_weights, kKept);
    double count = 0, count_best = 0, distance = 0;
    for (Index i = 0; i < task.queries(); ++i) {
      const auto X = task.values(task.sequence(i));
      std::vector<double> scores;
      for (Index t = 0; t < task.visible(i); ++t) scores.push_back(X.row(t).dot(task.head().v));
      const std::vector<double> best = best_weights(scores, task.head().lambda);
      for (Index t = 0; t < task.visible(i); ++t) {
        const double weight = best[static_cast<std::size_t>(t)];
        count_best += weight >= kKept ? 1 : 0;
        distance = std::max(distance, std::abs(std::exp(map.log_weights(i, t)) - weight));
      }
      count += static_cast<double>(kept.kept(i).size());
    }
    const auto queries = static_cast<double>(task.queries());
    StudyRow row{"", {{"kept", count / queries}, {"kept_best", count_best / queries}, {"distance", distance}}};
    MarginSolver solver(alone);
    const Equivalence fit = fit_equivalence(task, kept, run.W, map.log_weights, {}, solver);
    if (!fit.holds_together() || fit.gen.objective == 0 || fit.single.status != MarginStatus::optimal) return row;
    if (!add_distances(task, kept, map, fit, run, "", row.result)) return StudyRow::rejected(kNotVerified);
    return row;
  }

  static void draw(const std::vector<CellRows>& cells, Summary& summary) {
    const Table& table = summary.table;
    summary.figure = {
        .title = "A concave head spreads attention over several tokens (n = 4, T = 6, d = 10)",
        .caption =
            "(a) tokens kept per query after training, bars are one standard deviation over tasks, against the best "
            "mixture of the head, a projection onto the simplex. (b) mean 1 − correlation of the trained W with each "
            "prediction, and (c) how W_fin + R W^mm of the final kept sets is approached in training.",
        .columns = 3};
    const auto column = [&](std::size_t at) {
      std::vector<double> list;
      for (const Json& row : table.rows) list.push_back(row[at]);
      return list;
    };
    Panel count{.title = "Tokens kept",
                .x_label = "curvature λ of the head",
                .y_label = "tokens per query",
                .x_range = {{-0.03, 1.03}},
                .y_range = {{0, 6.5}}};
    Curve kept{.label = "trained", .mark = Mark::bars, .style = 0, .x = column(0), .y = column(2)};
    const std::vector<double> sd = column(3);
    for (std::size_t k = 0; k < sd.size(); ++k) {
      const double spread = std::isfinite(sd[k]) ? sd[k] : 0;
      kept.low.push_back(kept.y[k] - spread);
      kept.high.push_back(kept.y[k] + spread);
    }
    count.curves = {std::move(kept), {.label = "best mixture", .style = 1, .x = column(0), .y = column(4)}};
    Panel predicted{.title = "Which SVM predicts W",
                    .x_label = "curvature λ of the head",
                    .y_label = "1 − correlation",
                    .log_y = true,
                    .x_range = {{-0.03, 1.03}}};
    for (std::size_t p = 0; p < kPredictions.size(); ++p)
      predicted.curves.push_back(
          {.label = kPredictions[p].label, .style = static_cast<int>(p), .x = column(0), .y = column(6 + p)});
    Panel time = distance_over_steps("W_{fin} + R W^{mm} in training", 20000);
    int style = 0;
    for (const CellRows& rows : cells) {
      const double lambda = rows.cell.settings.at("lambda");
      if (lambda != 0 && lambda != 0.1 && lambda != 0.3 && lambda != 0.5) continue;
      std::vector<const Json*> compared;
      for (const Json* result : rows.results()) {
        if (result->contains("equivalence")) compared.push_back(result);
      }
      time.curves.push_back(mean_over_steps(mean_curve(compared, "equivalence"),
                                            curve_steps(rows.cell.settings.at("steps")), fmt::format("λ = {}", lambda),
                                            style++));
    }
    summary.figure.panels = {std::move(count), std::move(predicted), std::move(time)};
  }

  static void explain(Summary& summary) {
    std::vector<std::string> kept, fit;
    double farthest = 0;
    for (const Json& row : summary.table.rows) {
      if (!std::isfinite(row[2].get<double>())) continue;
      kept.push_back(fmt::format("{:.2f} at λ = {}", row[2].get<double>(), row[0].get<double>()));
      farthest = std::max(farthest, row[5].get<double>());
      if (row[9].get<Index>() > 0)
        fit.push_back(fmt::format("{:.3g} / {:.3g} / {:.3g} at λ = {}", row[6].get<double>(), row[7].get<double>(),
                                  row[8].get<double>(), row[0].get<double>()));
    }
    summary.findings = {
        {.paper = "More tokens are kept as λ grows.",
         .ours = fmt::format("Mean number of tokens kept: {}. The trained weights differ from the head's best mixture "
                             "by at most {:.2g} in the mean over tasks.",
                             fmt::join(kept, ", "), farthest),
         .why = ""},
        {.paper = "W is predicted by W_fin + R W^mm, less well by W^mm alone.",
         .ours = fmt::format("1 − correlation with W_fin + R W^mm / W^mm / one token: {}.", fmt::join(fit, ", ")),
         .why = ""}};
  }
};

}  // namespace

std::unique_ptr<Study> quadratic_head_study() { return std::make_unique<QuadraticHead>(); }

}  // namespace attsvm::internal
