#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "study/panels.h"
#include "study/training.h"
#include "theory/claim_tools.h"
#include "theory/head_runs.h"

namespace attsvm::internal {
namespace {

constexpr std::array<Index, 4> kHeadCounts{1, 2, 4, 8};
constexpr Index kHeadSteps = 4'000;

/// The median over heads of 1 − correlation with the SVM of the head's own selection, at every recorded point but 0.
std::vector<double> medians_along(const HeadsRun& heads) {
  std::vector<double> list;
  for (const Record& record : heads.run.records) {
    if (record.step > 0) list.push_back(median(head_distances(heads, record.W)));
  }
  return list;
}

class Heads final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "heads",
            .title = "Many heads: directions, and how they divide the tokens",
            .setting = fmt::format(
                "Random tasks (6,8,10), logistic loss, H heads whose outputs add up, v of length 1 each, {} normalized "
                "steps of 0.1 from zero, exact arithmetic; a norm per head, and one norm over all heads. Every head is "
                "compared with the SVM of its own selection. Beside them the same heads trained one by one, and "
                "together with their v's; 50 tasks each.",
                kHeadSteps),
            .paper =
                "Our own. Expected: every head tends to the SVM of its own selection. Open: whether heads divide the "
                "tokens among them.",
            .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    cells.reserve(kHeadCounts.size());
    for (const Index heads : kHeadCounts) {
      cells.push_back({.name = fmt::format("H={}", heads),
                       .settings = {{"n", 6}, {"T", 8}, {"d", 10}, {"heads", heads}, {"steps", kHeadSteps}},
                       .runs = 50,
                       .cost = 1e4 * static_cast<double>(heads)});
    }
    return cells;
  }

  Index batch() const override { return 4; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const std::vector<AttentionTask> tasks = draw_tasks(recipe_of(cell.settings), draws, threads);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      TrainSettings training{.heads = cell.settings.at("heads"),
                             .steps = cell.settings.at("steps"),
                             .seed = draws.seed,
                             .instance = draws.instance(k)};
      training.record.at = curve_steps(training.steps);
      StudyRow row;
      const HeadsRun own = run_heads(tasks[k], training, alone);
      row.result["own"] = json_list(medians_along(own));
      row.result["tokens"] = own.division.tokens_per_query;
      row.result["distinct"] = static_cast<double>(own.division.distinct) / static_cast<double>(training.heads);
      row.result["alone"] =
          division_of(selected_alone(tasks[k], training, own.run, alone), training.heads).tokens_per_query;
      TrainSettings joint = training;
      joint.joint = true;
      row.result["trained"] =
          division_of(attention_map(tasks[k], train(tasks[k], joint, alone).W, alone).selected, training.heads)
              .tokens_per_query;
      training.shared_norm = training.heads > 1;
      const HeadsRun shared = training.shared_norm ? run_heads(tasks[k], training, alone) : own;
      row.result["shared"] = json_list(medians_along(shared));
      row.result["level_shared"] = shared.level;
      row.result["level_own"] = own.level;
      return row;
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"heads", "H"},
                             {"runs", "tasks drawn"},
                             {"distinct", "different selections, as a share of the heads"},
                             {"tokens", "different tokens per query, heads trained together"},
                             {"alone", "the same, heads trained one by one"},
                             {"trained", "the same, heads trained together with their v's"},
                             {"own", "norm per head: mean over tasks of the median over heads of 1 − correlation"},
                             {"shared", "one norm: the same"},
                             {"level_own", "norm per head: mean 1 − correlation with the SVM of all heads at once"},
                             {"level_shared", "one norm: the same"}};
    Panel tokens{.title = "Different tokens per query", .x_label = "heads H", .y_label = "tokens per query"};
    Panel distinct{
        .title = "Different selections", .x_label = "heads H", .y_label = "share of the heads", .y_range = {{0, 1.05}}};
    const std::array<std::pair<const char*, const char*>, 3> ways{
        {{"tokens", "together"}, {"alone", "one by one"}, {"trained", "together, v trained"}}};
    for (const auto& [name, label] : ways)
      tokens.curves.push_back({.label = label, .style = static_cast<int>(tokens.curves.size()), .x = {}, .y = {}});
    distinct.curves.push_back({.label = "", .x = {}, .y = {}});
    Panel own = distance_over_steps("A norm per head", kHeadSteps),
          shared = distance_over_steps("One norm over all heads", kHeadSteps);
    const std::vector<Index> all = curve_steps(kHeadSteps);
    const std::vector<double> steps(all.begin() + 1, all.end());
    for (const CellRows& rows : cells) {
      const auto results = rows.results();
      if (results.empty()) continue;
      const auto heads = rows.cell.settings.at("heads").get<double>();
      const auto mean = [&](const char* name) { return sample_of(results, name).mean; };
      const int style = static_cast<int>(own.curves.size());
      const std::string label = fmt::format("H = {}", heads);
      own.curves.push_back({.label = label, .style = style, .x = steps, .y = mean_curve(results, "own").mean});
      shared.curves.push_back({.label = label, .style = style, .x = steps, .y = mean_curve(results, "shared").mean});
      for (std::size_t k = 0; k < ways.size(); ++k) {
        tokens.curves[k].x.push_back(heads);
        tokens.curves[k].y.push_back(mean(ways.at(k).first));
      }
      distinct.curves[0].x.push_back(heads);
      distinct.curves[0].y.push_back(mean("distinct"));
      summary.table.rows.push_back(Json::array(
          {heads, rows.accepted(), mean("distinct"), mean("tokens"), mean("alone"), mean("trained"),
           own.curves.back().y.back(), shared.curves.back().y.back(), mean("level_own"), mean("level_shared")}));
    }
    summary.figure = {.title = "Many heads",
                      .caption =
                          "Means over tasks. How many different tokens a query's heads select (a), and how many heads "
                          "have a selection of their own (b); median over heads of 1 − correlation with the SVM of the "
                          "head's own selection, with a norm per head (c) and one norm over all heads (d).",
                      .columns = 2,
                      .panels = {std::move(tokens), std::move(distinct), std::move(own), std::move(shared)}};
    explain(summary);
    return summary;
  }

 private:
  static void explain(Summary& summary) {
    constexpr double kAlike = 0.02;  // of the tokens that heads select one by one
    std::vector<std::string> division, directions;
    bool alike = true;
    for (const Json& row : summary.table.rows) {
      if (row.at(0) == 1) continue;
      const auto number = [&](std::size_t k) { return row.at(k).is_number() ? row.at(k).get<double>() : kUnmeasured; };
      division.push_back(fmt::format("H = {}: {:.2f} together, {:.2f} one by one, {:.2f} with trained v's",
                                     row.at(0).get<int>(), number(3), number(4), number(5)));
      alike = alike && std::abs(number(3) - number(4)) <= kAlike * number(4);
      directions.push_back(fmt::format("H = {}: {:.1e} and {:.1e}", row.at(0).get<int>(), number(6), number(7)));
    }
    summary.findings.push_back(
        {.paper = "Every head tends to the SVM of its own selection.",
         .ours = fmt::format("1 − correlation after {} steps, with a norm per head and with one norm: {}.", kHeadSteps,
                             fmt::join(directions, "; ")),
         .why = ""});
    summary.findings.push_back(
        {.paper = "Heads divide the tokens among them.",
         .ours = fmt::format("Different tokens per query: {}.", fmt::join(division, "; ")),
         .why = alike ? "They ignore each other: heads select as many together as one by one." : ""});
  }
};

}  // namespace

std::unique_ptr<Study> heads_study() { return std::make_unique<Heads>(); }

}  // namespace attsvm::internal
