#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/instances.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

class MultiInput final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "multi-input",
            .title = "Several inputs: every prompt turns to the p-SVM",
            .setting =
                "Prompt attention, n = 3, T = 7; one optimal token (score 1) and six others (score 0.5) per input, "
                "Gaussian noise of 0.2 "
                "around (1,0), (−1,1), (−0.5,−0.5), keys without the third coordinate; six starts p = (q,0,0), q from "
                "1 to −1.5; "
                "999 normalized gradient steps of 0.1 and plain gradient steps of 1. Plain arithmetic adds 1e-12 to "
                "norms, as published. A run is a data set with all six starts; those without a p-SVM are drawn again.",
            .paper =
                "Max-Margin Token Selection: the paths of all starts turn to the p-SVM direction; softmax weights of "
                "the optimal "
                "tokens go to one while the norm of p grows, linearly for normalized and logarithmically for plain "
                "gradient descent."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
      for (const Arithmetic arithmetic : {Arithmetic::plain, Arithmetic::exact}) {
        Json settings{{"data", "multi-input"}, {"starts", kPromptStarts}};
        settings.update(json_of({.param = Parametrization::p,
                                 .optimizer = optimizer,
                                 .step = optimizer == Optimizer::ngd ? 0.1 : 1.0,
                                 .steps = 999,
                                 .epsilon = arithmetic == Arithmetic::plain && optimizer == Optimizer::ngd ? 1e-12 : 0,
                                 .arithmetic = arithmetic,
                                 .init = Init::zero}));
        cells.push_back({.name = fmt::format("{} {}", name_of(optimizer), name_of(arithmetic)),
                         .settings = std::move(settings),
                         .cost = 999 * 6 * 1.0});
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, std::uint64_t seed, std::uint32_t first, std::uint32_t count,
                            Threads& threads) const override {
    TrainSettings training = training_of(cell.settings);
    training.record.at = path_steps(training.steps);
    std::vector<StudyRow> rows(count);
    for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      rows[k] = run_one(training, seed, first + static_cast<std::uint32_t>(k), alone);
    });
    return rows;
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"optimizer", "normalized (ngd) or plain (gd) gradient steps"},
                             {"arithmetic", "plain doubles, or exact directions"},
                             {"start", "q of the start (q,0,0)"},
                             {"step", "gradient steps taken"},
                             {"p1", "first coordinate of p, first data set"},
                             {"p2", "second"},
                             {"attention", "softmax weight of the optimal token, mean over inputs"},
                             {"norm", "of p"},
                             {"correlation", "of p with the p-SVM of the optimal tokens"}};
    for (const CellRows& rows : cells) add_rows(rows, summary.table);
    draw(cells, summary.figure);
    explain(cells, summary.findings);
    return summary;
  }

 private:
  static StudyRow run_one(const TrainSettings& training, std::uint64_t seed, std::uint32_t instance, Threads& alone) {
    const AttentionTask task = generate({.law = Law::multi_input}, seed, instance).task;
    TaskArrays identity = task.arrays();
    identity.keys = {};
    const AttentionTask published(std::move(identity));  // the SVM that was plotted reads tokens, not keys
    bool verified = true;
    MarginSolver solver(alone);
    const Selection& optimal = *task.select();
    const MarginSolution svm = solve_verified(MarginProblem::attention(task, optimal), Norm::frobenius(), solver,
                                              verified),
                         plotted = solve_verified(MarginProblem::attention(published, optimal), Norm::frobenius(),
                                                  solver, verified);
    if (svm.status == MarginStatus::infeasible) return {"p-SVM infeasible", Json::object()};
    if (!verified) return {"SVM not verified", Json::object()};
    std::vector<Index> tokens;
    for (Index i = 0; i < task.queries(); ++i) tokens.push_back(optimal.first(i));
    Json starts = Json::array();
    double worst = 1;
    for (const double q : kPromptStarts) {
      const TrainedRun run = train(task, training, alone, {.W = (RowMatrix(3, 1) << q, 0, 0).finished()});
      std::vector<double> attention, norm, list;
      for (const Record& record : run.records) {
        attention.push_back(mean_weight(task, record.W, tokens, alone));
        norm.push_back(record.norm);
        list.push_back(correlation(record.W, svm.W));
      }
      worst = std::min(worst, list.back());
      starts.push_back({{"start", q},
                        {"step", json_list(steps_of(run))},
                        {"p1", json_list(coordinate(run, 0))},
                        {"p2", json_list(coordinate(run, 1))},
                        {"attention", json_list(attention)},
                        {"norm", json_list(norm)},
                        {"correlation", json_list(list)}});
    }
    return {"",
            {{"worst_correlation", worst},
             {"svm", {svm.W(0, 0), svm.W(1, 0)}},
             {"svm_plotted", {plotted.W(0, 0), plotted.W(1, 0), plotted.W(2, 0)}},
             {"plotted_correlation", correlation(svm.W, plotted.W)},
             {"starts", std::move(starts)}}};
  }

  static void add_rows(const CellRows& rows, Table& table) {
    if (rows.results().empty()) return;
    for (const Json& start : rows.results().front()->at("starts")) {
      for (std::size_t k = 0; k < start.at("step").size(); ++k) {
        Json row =
            Json::array({rows.cell.settings.at("optimizer"), rows.cell.settings.at("arithmetic"), start.at("start")});
        for (const char* name : {"step", "p1", "p2", "attention", "norm", "correlation"})
          row.push_back(start.at(name)[k]);
        table.rows.push_back(std::move(row));
      }
    }
  }

  static void draw(const std::vector<CellRows>& cells, Figure& figure) {
    figure = {.title = "Several inputs: every prompt turns to the p-SVM",
              .caption =
                  "First data set. (a, b) paths of p from six starts, exact directions; grey ray: the p-SVM of "
                  "the model's keys, black ray: "
                  "the SVM of identity keys that the published figure shows, its first two coordinates (it has a "
                  "third). (c, d) start "
                  "(1,0,0).",
              .columns = 2};
    Panel weight{.title = "Softmax weight of the optimal tokens",
                 .x_label = "steps",
                 .y_label = "weight",
                 .log_x = true,
                 .y_range = {{0, 1.02}},
                 .key = "right bottom"};
    Panel norm{
        .title = "Norm of p", .x_label = "steps", .y_label = "norm", .log_x = true, .log_y = true, .key = "left top"};
    for (const CellRows& rows : cells) {
      if (rows.results().empty()) continue;
      const Json& result = *rows.results().front();
      const bool normalized = rows.cell.settings.at("optimizer") == "ngd",
                 exact = rows.cell.settings.at("arithmetic") == "exact";
      const std::string name = normalized ? "normalized steps" : "plain steps";
      const double reach = normalized ? 8 : 5;
      if (exact) {
        Panel panel = plane(fmt::format("Paths, {}", name), reach);
        panel.x_range = {{-2, reach}};
        panel.y_range = {{-1.5, 1.5}};
        panel.square = false;
        if (normalized) panel.key.clear();  // the panel to the right of it has the same legend
        panel.curves.push_back(ray("p-SVM", 7, result.at("svm")[0], result.at("svm")[1], 2 * reach));
        panel.curves.push_back(
            ray("p-SVM as plotted", 6, result.at("svm_plotted")[0], result.at("svm_plotted")[1], 2 * reach));
        int style = 0;
        for (const Json& start : result.at("starts")) {
          panel.curves.push_back({.label = fmt::format("start ({}, 0, 0)", start.at("start").get<double>()),
                                  .style = style++,
                                  .x = numbers_list(start.at("p1")),
                                  .y = numbers_list(start.at("p2"))});
        }
        figure.panels.push_back(std::move(panel));
      }
      const Json& start = result.at("starts")[0];
      const std::string label = fmt::format("{}, {}", name, arithmetic_words(rows.cell.settings.at("arithmetic")));
      const int style = (normalized ? 0 : 1) + (exact ? 0 : 2);
      weight.curves.push_back({.label = label,
                               .style = style,
                               .x = numbers_list(start.at("step")),
                               .y = numbers_list(start.at("attention"))});
      norm.curves.push_back(
          {.label = label, .style = style, .x = numbers_list(start.at("step")), .y = numbers_list(start.at("norm"))});
    }
    figure.panels.push_back(std::move(weight));
    figure.panels.push_back(std::move(norm));
  }

  static void explain(const std::vector<CellRows>& cells, std::vector<Finding>& findings) {
    std::string ours;
    for (const CellRows& rows : cells)
      ours += fmt::format("{}{}: {}", ours.empty() ? "" : "; ", rows.cell.name,
                          words_of(sample_of(numbers_of(rows.results(), "worst_correlation"))));
    findings.push_back(
        {.paper = "All paths reach the p-SVM direction.",
         .ours = fmt::format("Correlation of the worst of six starts with the p-SVM after 999 steps: {}.", ours),
         .why = "Plain gradient steps grow the norm only logarithmically and are still turning."});
    if (cells.empty()) return;
    const Sample plotted = sample_of(numbers_of(cells.back().results(), "plotted_correlation"));
    findings.push_back(
        {.paper = "The plotted SVM direction.",
         .ours = fmt::format("Its correlation with the p-SVM of the model that is trained: {}.", words_of(plotted)),
         .why = "The plotted SVM uses identity keys, although the model's keys drop the third coordinate. Both rays "
                "are drawn."});
  }
};

}  // namespace

std::unique_ptr<Study> multi_input_study() { return std::make_unique<MultiInput>(); }

}  // namespace attsvm::internal
