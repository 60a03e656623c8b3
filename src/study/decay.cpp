#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/training.h"
#include "theory/settling.h"

namespace attsvm::internal {
namespace {

constexpr Index kDecayTasks = 32;
constexpr const char *kDecayCell = "weight decay", *kDropoutCell = "dropout";
const Json kDecaySizes{{"n", 3}, {"T", 4}, {"d", 5}};

Json with_sizes(Json own) {
  own.update(kDecaySizes);
  return own;
}

StudyRow decay_row(const AttentionTask& task, std::uint64_t seed, Threads& alone) {
  const MarginProblem problem = MarginProblem::attention(task, optimal_tokens(task).selection);
  VerifyingSolver solver(alone);
  const MarginSolution svm = solver.solve(problem);
  if (!solver.verified()) return StudyRow::rejected(kNotVerified);
  if (svm.status != MarginStatus::optimal) return StudyRow::rejected("optimal tokens not separable");
  std::vector<double> norm, to_path, to_svm;
  for (const double decay : kDecays) {
    const DecayedRun run = run_with_decay(task, Optimizer::gd, kDecayStep, decay, seed, alone);
    norm.push_back(run.norm);
    to_path.push_back(run.to_path);
    to_svm.push_back(1 - correlation(run.W, svm.W));
  }
  return {"", {{"norm", json_list(norm)}, {"to_path", json_list(to_path)}, {"to_svm", json_list(to_svm)}}};
}

StudyRow dropout_row(const AttentionTask& task, std::uint64_t seed, std::uint32_t instance, Threads& alone) {
  std::vector<double> reached, predicted, smallest, saturating, excess;
  for (const double dropout : kDropouts) {
    const DropoutRun run = run_with_dropout(task, dropout, seed, instance, alone);
    const auto count = static_cast<double>(run.limits.size());
    double sum = 0, limits = 0, vertices = 0;
    for (std::size_t i = 0; i < run.limits.size(); ++i) {
      sum += run.largest[i];
      limits += run.limits[i].attention.maxCoeff();
      vertices += run.limits[i].saturates ? 1 : 0;
    }
    reached.push_back(sum / count);
    predicted.push_back(limits / count);
    smallest.push_back(*std::min_element(run.largest.begin(), run.largest.end()));
    saturating.push_back(vertices / count);
    excess.push_back(run.excess);
  }
  return {"",
          {{"attention", json_list(reached)},
           {"predicted", json_list(predicted)},
           {"smallest", json_list(smallest)},
           {"saturating", json_list(saturating)},
           {"excess", json_list(excess)}}};
}

/// Entry k of a list of every result.
std::vector<double> entries(const std::vector<const Json*>& results, const std::string& name, std::size_t k) {
  std::vector<double> list;
  for (const Json* result : results) list.push_back(numbers_list(result->at(name)).at(k));
  return list;
}

double largest_of(const std::vector<double>& list) { return *std::max_element(list.begin(), list.end()); }

/// The mean over runs of a list against `x`, with bars of one standard error.
Curve bars_of(const std::vector<const Json*>& results, const std::string& name, std::vector<double> x,
              std::string label, int style) {
  Curve curve{.label = std::move(label), .mark = Mark::bars, .style = style, .x = std::move(x), .y = {}};
  if (results.empty()) return {.label = curve.label, .mark = Mark::bars, .style = style, .x = {}, .y = {}};
  for (std::size_t k = 0; k < curve.x.size(); ++k) {
    const Sample sample = sample_of(entries(results, name, k));
    curve.y.push_back(sample.mean);
    curve.low.push_back(sample.mean - sample.error());
    curve.high.push_back(sample.mean + sample.error());
  }
  return curve;
}

class Decay final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "decay",
            .title = "Where weight decay and dropout hold a run",
            .setting = fmt::format(
                "Random tasks (3,4,5), linear head, logistic loss, W from zero by gradient steps of {}: 32 separable "
                "tasks with weight decay λ = {}, {:g}/λ steps, and 32 tasks with dropout {}, {} steps that fall along "
                "a cosine. The path's minimiser is the best of four random starts and the ray of W^mm.",
                kDecayStep, fmt::join(kDecays, ", "), static_cast<double>(decayed_steps(kDecayStep, 1)),
                fmt::join(kDropouts, ", "), kDropoutSteps),
            .paper =
                "Our own. Expected: with decay λ a run settles on the regularization path, at a norm that grows as λ "
                "falls; with dropout attention tends to the point of the simplex of least expected loss, which often "
                "is no vertex.",
            .published = false};
  }

  std::vector<StudyCell> cells() const override {
    return {{.name = kDecayCell,
             .settings = with_sizes({{"step", kDecayStep}, {"decay", kDecays}}),
             .runs = kDecayTasks,
             .cost = 4e5},
            {.name = kDropoutCell,
             .settings = with_sizes({{"step", kDropoutStep}, {"steps", kDropoutSteps}, {"dropout", kDropouts}}),
             .runs = kDecayTasks,
             .cost = 2e5}};
  }

  Index batch() const override { return 4; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const std::vector<AttentionTask> tasks = draw_tasks(recipe_of(cell.settings), draws, threads);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      return cell.name == kDecayCell ? decay_row(tasks[k], draws.seed, alone)
                                     : dropout_row(tasks[k], draws.seed, draws.instance(k), alone);
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"regularizer", "weight decay or dropout"},
                             {"strength", "λ, or the chance of dropping an attention weight"},
                             {"runs", "whose means these are"},
                             {"norm", "decay: mean of ‖W‖_F where the run settles"},
                             {"to_svm", "decay: mean 1 − correlation with W^mm of the optimal tokens"},
                             {"to_path", "decay: largest 1 − correlation with the path's minimiser at this norm"},
                             {"attention", "dropout: mean attention of the selected tokens"},
                             {"predicted", "dropout: the same at least expected loss"},
                             {"smallest", "dropout: smallest attention of a selected token"},
                             {"saturating", "dropout: share of queries whose least expected loss is at a vertex"},
                             {"excess",
                              "dropout: largest share left of the expected loss that equal attention has "
                              "above the least"}};
    const std::vector<const Json*> decayed = cells.at(0).results(), dropped = cells.at(1).results();
    const std::vector<double> decays(kDecays.begin(), kDecays.end()), chances(kDropouts.begin(), kDropouts.end());
    Panel norm{.title = "‖W‖ where a run settles",
               .x_label = "weight decay λ",
               .y_label = "‖W‖_F",
               .log_x = true,
               .x_range = {{5e-5, 0.2}}};
    Panel angle{.title = "1 − correlation with W^{mm}",
                .x_label = "weight decay λ",
                .y_label = "1 − correlation",
                .log_x = true,
                .x_range = {{5e-5, 0.2}},
                .y_range = {{0, 0.5}}};
    Panel attention{.title = "Attention under dropout",
                    .x_label = "chance of dropping a weight",
                    .y_label = "attention of the selected token",
                    .x_range = {{0, 0.6}},
                    .y_range = {{0.6, 1.02}}};
    norm.curves = {bars_of(decayed, "norm", decays, "", 0)};
    angle.curves = {bars_of(decayed, "to_svm", decays, "", 0)};
    attention.curves = {bars_of(dropped, "attention", chances, "mean of runs", 0),
                        bars_of(dropped, "predicted", chances, "mean at least expected loss", 1),
                        bars_of(dropped, "smallest", chances, "smallest of a task, mean", 2)};
    summary.figure = {.title = "Where weight decay and dropout hold a run",
                      .caption =
                          "Means over tasks ± one standard error. Weight decay: gradient descent settles on "
                          "the regularization path (a, b). Dropout: attention tends to the point of the simplex "
                          "of least expected loss (c).",
                      .columns = 3,
                      .panels = {std::move(norm), std::move(angle), std::move(attention)}};
    explain_decay(decayed, summary);
    explain_dropout(dropped, summary);
    return summary;
  }

 private:
  static void explain_decay(const std::vector<const Json*>& runs, Summary& summary) {
    if (runs.empty()) return;
    constexpr double kOnPath = 1e-8;
    std::vector<std::string> words;
    const Index all = std::ssize(runs) * std::ssize(kDecays);
    Index off = 0;
    for (std::size_t k = 0; k < kDecays.size(); ++k) {
      const double norm = sample_of(entries(runs, "norm", k)).mean, to_svm = sample_of(entries(runs, "to_svm", k)).mean;
      const std::vector<double> distances = entries(runs, "to_path", k);
      const double to_path = largest_of(distances);
      off += std::count_if(distances.begin(), distances.end(), [](double one) { return !(one <= kOnPath); });
      summary.table.rows.push_back(Json::array(
          {kDecayCell, kDecays[k], runs.size(), norm, to_svm, to_path, nullptr, nullptr, nullptr, nullptr, nullptr}));
      words.push_back(fmt::format("λ = {:g}: {:.2f} and {:.3f}", kDecays[k], norm, to_svm));
    }
    summary.findings.push_back(
        {.paper = "With decay λ a run settles on the regularization path, closer to W^mm the smaller λ is.",
         .ours =
             fmt::format("{} of {} runs are at the path's minimiser of their norm (1 − correlation at most {:g}). Mean "
                         "‖W‖ and 1 − correlation with W^mm: {}.",
                         all - off, all, kOnPath, fmt::join(words, "; ")),
         .why =
             off == 0 ? "" : "The others settle at another stationary point of the loss on the sphere of their norm."});
  }

  static void explain_dropout(const std::vector<const Json*>& runs, Summary& summary) {
    if (runs.empty()) return;
    std::vector<std::string> words;
    for (std::size_t k = 0; k < kDropouts.size(); ++k) {
      const auto mean = [&](const char* name) { return sample_of(entries(runs, name, k)).mean; };
      const std::vector<double> smallest = entries(runs, "smallest", k);
      const double least = *std::min_element(smallest.begin(), smallest.end());
      const double excess = largest_of(entries(runs, "excess", k));
      summary.table.rows.push_back(
          Json::array({kDropoutCell, kDropouts[k], runs.size(), nullptr, nullptr, nullptr, mean("attention"),
                       mean("predicted"), least, mean("saturating"), excess}));
      words.push_back(
          fmt::format("dropout {:g}: {:.0f} % of queries, attention {:.3f} (predicted {:.3f}), smallest {:.3f}",
                      kDropouts[k], 100 * mean("saturating"), mean("attention"), mean("predicted"), least));
    }
    summary.findings.push_back(
        {.paper = "A query saturates under dropout only if a vertex of the simplex has the least expected loss.",
         .ours = fmt::format("Share of queries with such a vertex, and mean attention of the selected tokens: {}.",
                             fmt::join(words, "; ")),
         .why = ""});
  }
};

}  // namespace

std::unique_ptr<Study> decay_study() { return std::make_unique<Decay>(); }

}  // namespace attsvm::internal
