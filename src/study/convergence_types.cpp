#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

constexpr std::array kSizes{Size{3, 5}, Size{5, 5}, Size{10, 5}, Size{5, 3}, Size{5, 10}};
constexpr std::array<Index, 7> kDimensions{2, 4, 6, 8, 10, 15, 20};
constexpr std::array kVerdicts{"global", "local", "neither"};

class ConvergenceTypes final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "convergence-types",
            .title = "Over-parametrization makes runs end at the global solution",
            .setting =
                "Cross attention, unit Gaussian data, random labels, linear head; (n,T) is (3,5), (5,5), (10,5), "
                "(5,3), (5,10), d from 2 to 20; 200 tasks each; W trained from zero with 2,000 exact normalized "
                "gradient steps of 0.1. Sizes and counts are ours.",
            .paper =
                "Transformers as Support Vector Machines (arXiv 2308.16898), the figure of global and local "
                "convergence as d grows: as "
                "d grows, more runs end at the SVM of the optimal tokens (global), fewer at that of another locally "
                "optimal selection (local)."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const Size& size : kSizes) {
      for (const Index d : kDimensions) {
        cells.push_back({.name = cell_name(size, d),
                         .settings = cell_settings({{"n", size.n}, {"T", size.T}, {"d", d}}, {.init = Init::zero}),
                         .runs = 200,
                         .cost = 2000 * 4.0 * static_cast<double>(size.n * size.T) / 48});
      }
    }
    return cells;
  }

  Index batch() const override { return 100; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    return train_and_judge(recipe_of(cell.settings), training_of(cell.settings), draws, threads, judge);
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"n", "sequences"},
                             {"T", "tokens per sequence"},
                             {"d", "size of tokens and queries"},
                             {"runs", "tasks trained"},
                             {"global", "share of runs that select the optimal tokens"},
                             {"local", "share that select another locally optimal selection"},
                             {"neither", "the rest"},
                             {"standard_error", "of the share of global runs"},
                             {"support_share", "mean share of the tokens not selected that are support tokens"},
                             {"attention", "mean softmax weight of the selected tokens at the end"},
                             {"correlation", "mean correlation with the SVM of the selected tokens, where it exists"}};
    for (const CellRows& rows : cells) add_row(rows, summary.table);
    draw(summary);
    explain(summary);
    return summary;
  }

 private:
  static StudyRow judge(const AttentionTask& task, const TrainedRun& run, Threads& alone) {
    const AttentionMap map = attention_map(task, run.W, alone);
    const Check check = check_selection(task, Selection::single(map.selected), {}, alone);
    VerifyingSolver solver(alone);
    const MarginSolution fro = solver.solve(MarginProblem::attention(task, check.selection));
    if (!solver.verified()) return StudyRow::rejected(kNotVerified);
    double attention = 0;
    for (Index i = 0; i < task.queries(); ++i) attention += map.weight(i) / static_cast<double>(task.queries());
    Json result{{"verdict", name_of(check.verdict)},
                {"separable", check.separable},
                {"stopped", name_of(run.stop)},
                {"attention", attention}};
    if (check.separable) {
      result["correlation"] = correlation(run.W, fro.W);
      result["support_share"] = static_cast<double>(check.report->support.size()) /
                                static_cast<double>(task.queries() * (task.longest() - 1));
    }
    return {"", std::move(result)};
  }

  static void add_row(const CellRows& rows, Table& table) {
    const auto results = rows.results();
    const auto runs = static_cast<double>(results.size());
    const Json& s = rows.cell.settings;
    Json row = Json::array({s.at("n"), s.at("T"), s.at("d"), results.size()});
    const auto count = [&](const char* verdict) {
      return static_cast<double>(std::count_if(results.begin(), results.end(),
                                               [&](const Json* result) { return result->at("verdict") == verdict; }));
    };
    const double global = count("global") / runs, local = count("local") / runs;
    for (const double share : {global, local, (runs - count("global") - count("local")) / runs}) row.push_back(share);
    row.push_back(std::sqrt(global * (1 - global) / runs));
    for (const char* name : {"support_share", "attention", "correlation"}) row.push_back(sample_of(results, name).mean);
    table.rows.push_back(std::move(row));
  }

  static void draw(Summary& summary) {
    summary.figure = {
        .title = "How runs end as d grows",
        .caption =
            "Share of runs that select the optimal tokens (global), another locally optimal selection (local), or "
            "neither. (f) share of the tokens not selected that are support tokens of the run's SVM.",
        .columns = 3};
    Panel support{.title = "Support tokens", .x_label = kSizeLabel, .y_label = "share of tokens", .y_range = {{0, 1}}};
    int style = 0;
    for (const Size& size : kSizes) {
      const std::string name = fmt::format("n = {}, T = {}", size.n, size.T);
      Panel panel{.title = name, .x_label = kSizeLabel, .y_label = "share of runs", .y_range = {{0, 1}}};
      Curve tokens{.label = name, .style = style++};
      for (std::size_t v = 0; v < kVerdicts.size(); ++v)
        panel.curves.push_back(
            {.label = kVerdicts[v], .mark = Mark::boxes, .style = static_cast<int>(v), .width = 1.6});
      for (const Json* at : rows_of(summary.table, size)) {
        const Json& row = *at;
        if (row[3] == 0) continue;
        double from = 0;
        for (std::size_t v = 0; v < kVerdicts.size(); ++v) {
          Curve& curve = panel.curves[v];
          const double share = row[4 + v];
          curve.x.push_back(row[2]);
          curve.y.push_back(from + share);
          curve.low.push_back(from);
          curve.high.push_back(from + share);
          from += share;
        }
        tokens.x.push_back(row[2]);
        tokens.y.push_back(row[8]);
      }
      summary.figure.panels.push_back(std::move(panel));
      support.curves.push_back(std::move(tokens));
    }
    summary.figure.panels.push_back(std::move(support));
  }

  static void explain(Summary& summary) {
    std::vector<std::string> ends;
    for (const Size& size : kSizes) {
      std::string first = "none", last = "none";
      for (const Json* at : rows_of(summary.table, size)) {
        const Json& row = *at;
        if (row[3] == 0) continue;
        std::string& text = row[2] == kDimensions.front() ? first : last;
        text = fmt::format("{:.0f} ± {:.0f}", 100 * row[4].get<double>(), 100 * row[7].get<double>());
      }
      ends.push_back(fmt::format("(n,T) = ({},{}): {} to {}", size.n, size.T, first, last));
    }
    summary.findings = {
        {.paper = "Over-parametrization helps: the share of global runs grows with d.",
         .ours = fmt::format("Share of global runs in percent, with its standard error, from d = {} to d = {}: {}.",
                             kDimensions.front(), kDimensions.back(), fmt::join(ends, "; ")),
         .why = ""}};
  }
};

}  // namespace

std::unique_ptr<Study> convergence_types_study() { return std::make_unique<ConvergenceTypes>(); }

}  // namespace attsvm::internal
