#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/training.h"
#include "theory/settling.h"

namespace attsvm::internal {
namespace {

constexpr Index kDecayTasks = 32;
constexpr const char *kDecayCell = "weight decay", *kDropoutCell = "dropout", *kSmoothingCell = "label smoothing",
                     *kBatchCell = "minibatches";
constexpr std::array<Index, 4> kBatchSizes{1, 2, 3, 6};  // the last one is all queries
constexpr Index kBatchSteps = 20'000;
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

StudyRow smoothing_row(const AttentionTask& task, Threads& alone) {
  std::vector<double> output, limit, off;
  for (const double smoothing : kSmoothings) {
    const SmoothedRun run = run_with_smoothing(task, smoothing, alone);
    const auto count = static_cast<double>(run.output.size());
    output.push_back(std::reduce(run.output.begin(), run.output.end()) / count);
    limit.push_back(std::reduce(run.limit.begin(), run.limit.end()) / count);
    off.push_back(run.off);
  }
  return {"", {{"output", json_list(output)}, {"limit", json_list(limit)}, {"off", json_list(off)}}};
}

/// 1 − correlation with the SVM of the tokens that each run selects, and of normalized steps on single queries with
/// where they should lead.
StudyRow batch_row(const AttentionTask& task, std::uint64_t seed, std::uint32_t instance, Threads& alone) {
  VerifyingSolver solver(alone);
  StudyRow row;
  for (const Optimizer optimizer : {Optimizer::gd, Optimizer::ngd}) {
    std::vector<double> off;
    for (const Index size : kBatchSizes) {
      const RowMatrix W = train(task,
                                {.optimizer = optimizer,
                                 .step = optimizer == Optimizer::gd ? kBatchStep : 0.1,
                                 .steps = kBatchSteps,
                                 .batch = size,
                                 .init = Init::zero,
                                 .seed = seed,
                                 .instance = instance},
                                alone)
                              .W;
      const MarginProblem problem =
          MarginProblem::attention(task, Selection::single(attention_map(task, W, alone).selected));
      const MarginSolution svm = solver.solve(problem);
      if (!solver.verified()) return StudyRow::rejected(kNotVerified);
      if (svm.status != MarginStatus::optimal) return StudyRow::rejected("selected tokens not separable");
      off.push_back(1 - correlation(W, svm.W));
      if (optimizer != Optimizer::ngd || size != 1) continue;
      const RowMatrix limit = single_query_limit(problem, alone);
      if (limit.isZero(0)) return StudyRow::rejected("no limit of steps on single queries found");
      row.result["to_limit"] = 1 - correlation(W, limit);
    }
    row.result[std::string(name_of(optimizer))] = json_list(off);
  }
  return row;
}

/// Entry k of a list of every result.
std::vector<double> entries(const std::vector<const Json*>& results, const std::string& name, std::size_t k) {
  std::vector<double> list;
  list.reserve(results.size());
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
            .title = "Where decay, dropout, label smoothing and minibatches lead a run",
            .setting = fmt::format(
                "Random tasks (3,4,5), linear head, logistic loss, W from zero by gradient steps of {}: 32 separable "
                "tasks with weight decay λ = {}, {:g}/λ steps, and 32 tasks with dropout {}, {} steps that fall along "
                "a cosine. The path's minimiser is the best of four random starts and the ray of W^mm. 32 tasks with "
                "label smoothing {}, {} steps. 32 tasks (6,8,10), whose steps of {}, or normalized ones of 0.1, see {} "
                "queries, {} steps.",
                kDecayStep, fmt::join(kDecays, ", "), static_cast<double>(decayed_steps(kDecayStep, 1)),
                fmt::join(kDropouts, ", "), kDropoutSteps, fmt::join(kSmoothings, ", "), kSmoothingSteps, kBatchStep,
                fmt::join(kBatchSizes, ", "), kBatchSteps),
            .paper =
                "Our own. Expected: with decay λ a run settles on the regularization path, at a norm that grows as λ "
                "falls; with dropout attention tends to the point of the simplex of least expected loss, which often "
                "is no vertex; with label smoothing every output tends to the one of least loss; minibatches "
                "do not change the direction.",
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
             .cost = 2e5},
            {.name = kSmoothingCell,
             .settings = with_sizes({{"step", kSmoothingStep}, {"steps", kSmoothingSteps}, {"smoothing", kSmoothings}}),
             .runs = kDecayTasks,
             .cost = 2e5},
            {.name = kBatchCell,
             .settings = {{"n", kBatchSizes.back()},
                          {"T", 8},
                          {"d", 10},
                          {"step", kBatchStep},
                          {"steps", kBatchSteps},
                          {"batch", kBatchSizes}},
             .runs = kDecayTasks,
             .cost = 8e5}};
  }

  Index batch() const override { return 4; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const std::vector<AttentionTask> tasks = draw_tasks(recipe_of(cell.settings), draws, threads);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      if (cell.name == kDecayCell) return decay_row(tasks[k], draws.seed, alone);
      if (cell.name == kDropoutCell) return dropout_row(tasks[k], draws.seed, draws.instance(k), alone);
      if (cell.name == kSmoothingCell) return smoothing_row(tasks[k], alone);
      return batch_row(tasks[k], draws.seed, draws.instance(k), alone);
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {
        {"part", "weight decay, dropout, label smoothing or minibatches"},
        {"strength", "λ, the chance of dropping an attention weight, smoothing, or queries per step"},
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
         "above the least"},
        {"output", "label smoothing: mean output yf"},
        {"limit", "label smoothing: mean of the nearest outputs to that of least loss"},
        {"gd",
         "minibatches: mean 1 − correlation of gradient steps with the SVM of the run's "
         "own tokens"},
        {"ngd", "minibatches: the same of normalized steps"}};
    const std::vector<const Json*> decayed = cells.at(0).results(), dropped = cells.at(1).results(),
                                   smoothed = cells.at(2).results(), batched = cells.at(3).results();
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
    Panel output{.title = "Outputs under label smoothing",
                 .x_label = "label smoothing",
                 .y_label = "mean output yf",
                 .x_range = {{0.2, 1}}};
    Panel batch{.title = "Minibatches",
                .x_label = "queries per step",
                .y_label = "1 − correlation with the run's SVM",
                .x_range = {{0.5, 6.5}}};
    const std::vector<double> smoothings(kSmoothings.begin(), kSmoothings.end()),
        sizes(kBatchSizes.begin(), kBatchSizes.end());
    output.curves = {bars_of(smoothed, "output", smoothings, "runs", 0),
                     bars_of(smoothed, "limit", smoothings, "nearest to the least loss", 1)};
    batch.curves = {bars_of(batched, "gd", sizes, "gradient steps", 0),
                    bars_of(batched, "ngd", sizes, "normalized steps", 1)};
    summary.figure = {
        .title = "Where decay, dropout, label smoothing and minibatches lead a run",
        .caption =
            "Means over tasks ± one standard error. Weight decay: gradient descent settles on "
            "the regularization path (a, b). Dropout: attention tends to the point of the simplex "
            "of least expected loss (c). Label smoothing: outputs tend to the one of least loss, or "
            "as near to it as tokens allow (d). Minibatches do not change where gradient steps turn W; "
            "normalized steps on single queries turn it away from the SVM (e).",
        .columns = 3,
        .panels = {std::move(norm), std::move(angle), std::move(attention), std::move(output), std::move(batch)}};
    explain_decay(decayed, summary);
    explain_dropout(dropped, summary);
    explain_smoothing(smoothed, summary);
    explain_batches(batched, summary);
    return summary;
  }

 private:
  /// A row of the table, in which other columns than those named are empty.
  static void add_row(Summary& summary, const char* part, double strength, std::size_t runs,
                      const std::map<std::string, double>& values) {
    Json row = Json::array({part, strength, runs});
    for (std::size_t k = row.size(); k < summary.table.columns.size(); ++k) {
      const auto value = values.find(summary.table.columns[k].name);
      row.push_back(value == values.end() ? Json() : Json(value->second));
    }
    summary.table.rows.push_back(std::move(row));
  }

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
      add_row(summary, kDecayCell, kDecays[k], runs.size(), {{"norm", norm}, {"to_svm", to_svm}, {"to_path", to_path}});
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
      add_row(summary, kDropoutCell, kDropouts[k], runs.size(),
              {{"attention", mean("attention")},
               {"predicted", mean("predicted")},
               {"smallest", least},
               {"saturating", mean("saturating")},
               {"excess", excess}});
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

  static void explain_smoothing(const std::vector<const Json*>& runs, Summary& summary) {
    if (runs.empty()) return;
    std::vector<std::string> words;
    for (std::size_t k = 0; k < kSmoothings.size(); ++k) {
      const double output = sample_of(entries(runs, "output", k)).mean,
                   limit = sample_of(entries(runs, "limit", k)).mean;
      const std::vector<double> off = entries(runs, "off", k);
      const auto there = std::count_if(off.begin(), off.end(), [](double one) { return one <= kSmoothedClose; });
      add_row(summary, kSmoothingCell, kSmoothings[k], runs.size(), {{"output", output}, {"limit", limit}});
      words.push_back(fmt::format("smoothing {:g} (aim {:.2f}): {} of {}, mean output {:.3f} instead of {:.3f}",
                                  kSmoothings[k], smoothed_aim(kSmoothings[k]), there, runs.size(), output, limit));
    }
    summary.findings.push_back(
        {.paper =
             "Under label smoothing every output tends to the one of least loss, or as near to it as tokens allow.",
         .ours =
             fmt::format("Runs whose outputs are all within {:g} of that: {}.", kSmoothedClose, fmt::join(words, "; ")),
         .why = "A query that saturates at a locally optimal token does not get there, nor one that is still on the "
                "way."});
  }

  static void explain_batches(const std::vector<const Json*>& runs, Summary& summary) {
    if (runs.empty()) return;
    std::vector<std::string> gradient, normalized;
    for (std::size_t k = 0; k < kBatchSizes.size(); ++k) {
      const double gd = sample_of(entries(runs, "gd", k)).mean, ngd = sample_of(entries(runs, "ngd", k)).mean;
      add_row(summary, kBatchCell, static_cast<double>(kBatchSizes[k]), runs.size(), {{"gd", gd}, {"ngd", ngd}});
      gradient.push_back(fmt::format("{:.3f}", gd));
      normalized.push_back(fmt::format("{:.2g}", ngd));
    }
    std::vector<double> off;
    off.reserve(runs.size());
    for (const Json* run : runs) off.push_back(run->at("to_limit"));
    summary.findings.push_back(
        {.paper = "Minibatches leave the direction as it is.",
         .ours =
             fmt::format("With {} queries per step the mean 1 − correlation with the run's SVM is {} after normalized "
                         "steps, {} after gradient steps.",
                         fmt::join(kBatchSizes, ", "), fmt::join(normalized, ", "), fmt::join(gradient, ", ")),
         .why = fmt::format(
             "A normalized step moves every query of a batch of one equally far, whatever its margin, which "
             "should lead to a soft margin: 1 − correlation with that is at most {:.2g}.",
             largest_of(off))});
  }
};

}  // namespace

std::unique_ptr<Study> decay_study() { return std::make_unique<Decay>(); }

}  // namespace attsvm::internal
