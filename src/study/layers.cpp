#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "attsvm/hierarchy.h"
#include "study/panels.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

constexpr Index kLayersTasks = 24, kLayersSteps = 10'000, kLayersNull = 10;

struct LayersCell {
  Index layers, heads;
  bool train_values;

  std::string words() const {
    return fmt::format("{} layers, {} {}{}", layers, heads, heads == 1 ? "head" : "heads",
                       train_values ? ", values trained" : "");
  }
};
constexpr std::array kLayersCells{LayersCell{2, 1, false}, LayersCell{3, 2, false}, LayersCell{2, 1, true}};

std::string of_layer(const char* name, Index layer) { return fmt::format("{}_{}", name, layer); }

/// The mean of numbers of the heads of a layer.
class HeadMean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  Index count_ = 0;
};

StudyRow layers_row(const AttentionTask& task, const StackSettings& settings, Threads& alone) {
  const StackRun run = train_stack(task, settings, alone);
  const auto live = hierarchy(task, run.records, {.null_draws = kLayersNull}, alone);
  const auto all = hierarchy(task, run.records, {.askers = Askers::all, .null_draws = 0}, alone);
  const std::vector<AttentionTask> read = layer_tasks(task, run.last.stack, Askers::live, alone);
  StudyRow row;
  for (Index layer = 0; layer < settings.layers; ++layer) {
    std::vector<HeadMean> distance(run.records.size()), rho(run.records.size());
    HeadMean null_distance, null_rho, all_distance, all_rho;
    for (std::size_t k = 0; k < live.size(); ++k) {
      const HeadMargin& head = live[k];
      if (head.layer != layer) continue;
      const MarginProblem problem =
          MarginProblem::attention(read[static_cast<std::size_t>(layer)], Selection::single(head.selected));
      if (!is_verified(problem, head.solution)) return StudyRow::rejected(kNotVerified);
      for (std::size_t r = 0; r < run.records.size(); ++r) {
        distance[r].add(1 - head.correlation[r]);
        rho[r].add(head.rho[r]);
      }
      null_distance.add(1 - head.last_correlation.mean());
      null_rho.add(head.last_rho.mean());
      all_distance.add(1 - all[k].last_correlation.value);
      all_rho.add(all[k].last_rho.value);
    }
    std::vector<double> distances, shares;
    for (const HeadMean& one : distance) distances.push_back(one.value());
    for (const HeadMean& one : rho) shares.push_back(one.value());
    row.result[of_layer("distance", layer)] = json_list(distances);
    row.result[of_layer("rho", layer)] = json_list(shares);
    row.result[of_layer("null_distance", layer)] = null_distance.value();
    row.result[of_layer("null_rho", layer)] = null_rho.value();
    row.result[of_layer("all_distance", layer)] = all_distance.value();
    row.result[of_layer("all_rho", layer)] = all_rho.value();
  }
  return row;
}

class Layers final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "layers",
            .title = "Layers: a hierarchy of SVMs",
            .setting = fmt::format(
                "Random tasks (6,6,8) read at the last token by a linear head, logistic loss; causal layers with "
                "residuals, random values, W from zero by {} normalized steps of 0.1, each matrix with its own norm, "
                "exact arithmetic; {} tasks per stack. Every head is compared with the SVM of what it selects in its "
                "own final inputs at live positions: the last one and, from the last layer down, those that heads "
                "select for live positions. Null: {} matrices per head, W in the axes of its inputs with random "
                "signs, each beside its own SVM. Every SVM of a head is verified.",
                kLayersSteps, kLayersTasks, kLayersNull),
            .paper =
                "Our own. Expected: once the layers below have saturated, a head reads fixed tokens, so that it "
                "turns to its SVM as a single one does.",
            .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const LayersCell& one : kLayersCells) {
      const Json own{{"n", 6},
                     {"T", 6},
                     {"d", 8},
                     {"layers", one.layers},
                     {"heads", one.heads},
                     {"train_values", one.train_values}};
      cells.push_back({.name = one.words(),
                       .settings = cell_settings(own, TrainSettings{.steps = kLayersSteps}),
                       .runs = kLayersTasks,
                       .cost = 2e4 * static_cast<double>(one.layers * one.heads)});
    }
    return cells;
  }

  Index batch() const override { return 4; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    Recipe recipe = recipe_of(cell.settings);
    recipe.pattern = QueryPattern::prompt;
    const std::vector<AttentionTask> tasks = draw_tasks(recipe, draws, threads);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      StackSettings settings{.layers = cell.settings.at("layers"),
                             .heads = cell.settings.at("heads"),
                             .train_values = cell.settings.at("train_values"),
                             .training = recorded(cell.settings, curve_steps)};
      settings.training.seed = draws.seed;
      settings.training.instance = draws.instance(k);
      return layers_row(tasks[k], settings, alone);
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"layers", "layers of the stack"},
                             {"heads", "heads of every layer"},
                             {"values", "fixed, or trained too"},
                             {"layer", "from 0, the one that reads the task's tokens"},
                             kStepColumn,
                             {"runs", "whose means these are, over the heads of the layer too"},
                             {"distance", "mean 1 − correlation with the SVM at live positions"},
                             {"rho", "mean share of the largest margin at live positions"},
                             {"null_distance", "the same distance of the null of the last W"},
                             {"null_rho", "the same share of the null of the last W"},
                             {"all_distance", "mean 1 − correlation of the last W with the SVM of all positions"},
                             {"all_rho", "mean share of the last W of the largest margin at all positions"}};
    summary.figure = {.title = "Layers: every head beside its own SVM",
                      .caption =
                          "Means over tasks and heads. Left: distance of the direction from the SVM of live "
                          "positions; right: share of the largest margin. Dashed: the null of the last W.",
                      .columns = 2,
                      .panels = {}};
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const LayersCell& stack = kLayersCells.at(k);
      tabulate(stack, cells[k], summary.table);
      draw(stack, cells[k], summary.figure);
      summary.findings.push_back(explain(stack, cells[k]));
    }
    return summary;
  }

 private:
  static void tabulate(const LayersCell& stack, const CellRows& rows, Table& table) {
    const auto results = rows.results();
    if (results.empty()) return;
    const std::vector<Index> steps = curve_steps(kLayersSteps);
    for (Index layer = 0; layer < stack.layers; ++layer) {
      const MeanCurve distance = mean_curve(results, of_layer("distance", layer)),
                      rho = mean_curve(results, of_layer("rho", layer));
      const auto mean = [&](const char* name) { return sample_of(results, of_layer(name, layer)).mean; };
      for (std::size_t k = 1; k < steps.size(); ++k) {
        table.rows.push_back(
            Json::array({stack.layers, stack.heads, stack.train_values ? "trained" : "fixed", layer, steps[k],
                         results.size(), distance.mean[k], rho.mean[k], mean("null_distance"), mean("null_rho"),
                         mean("all_distance"), mean("all_rho")}));
      }
    }
  }

  static void draw(const LayersCell& stack, const CellRows& rows, Figure& figure) {
    const auto results = rows.results();
    const std::vector<Index> steps = curve_steps(kLayersSteps);
    Panel distance = distance_over_steps(stack.words(), static_cast<double>(kLayersSteps)),
          rho = over_steps(stack.words(), "share of the largest margin", static_cast<double>(kLayersSteps));
    rho.y_range = {{-1, 1.05}};
    for (Index layer = 0; layer < stack.layers && !results.empty(); ++layer) {
      const auto style = static_cast<int>(layer);
      const auto add = [&](Panel& panel, const char* name, const char* null) {
        panel.curves.push_back(
            mean_over_steps(mean_curve(results, of_layer(name, layer)), steps, fmt::format("layer {}", layer), style));
        panel.curves.back().look = {style, 0};
        const double level = sample_of(results, of_layer(null, layer)).mean;
        panel.curves.push_back({.label = "",
                                .style = style,
                                .x = {1, static_cast<double>(kLayersSteps)},
                                .y = {level, level},
                                .look = Look{style, 1}});
      };
      add(distance, "distance", "null_distance");
      add(rho, "rho", "null_rho");
    }
    figure.panels.push_back(std::move(distance));
    figure.panels.push_back(std::move(rho));
  }

  static Finding explain(const LayersCell& stack, const CellRows& rows) {
    const auto results = rows.results();
    Finding finding{.paper = fmt::format("{}: every head turns to the SVM of its own selection.", stack.words()),
                    .ours = "No run to judge by.",
                    .why = ""};
    if (results.empty()) return finding;
    std::vector<std::string> words;
    for (Index layer = 0; layer < stack.layers; ++layer) {
      std::vector<double> ends, shares;
      for (const Json* result : results) {
        ends.push_back(numbers_list(result->at(of_layer("distance", layer))).back());
        shares.push_back(numbers_list(result->at(of_layer("rho", layer))).back());
      }
      const auto mean = [&](const char* name) { return sample_of(results, of_layer(name, layer)).mean; };
      words.push_back(
          fmt::format("layer {}: 1 − correlation {:.2g} (null {:.2g}; with all positions {:.2g}), share of "
                      "the largest margin {:.3f} (null {:.3f}; all positions {:.3f})",
                      layer, sample_of(ends).mean, mean("null_distance"), mean("all_distance"), sample_of(shares).mean,
                      mean("null_rho"), mean("all_rho")));
    }
    finding.ours = fmt::format("Means at the end, {} runs: {}.", results.size(), fmt::join(words, "; "));
    if (stack.train_values) finding.why = "Trained values grow without bound, and so does what the layers above read.";
    return finding;
  }
};

}  // namespace

std::unique_ptr<Study> layers_study() { return std::make_unique<Layers>(); }

}  // namespace attsvm::internal
