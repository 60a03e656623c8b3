#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/panels.h"
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
                "Gaussian noise of 0.2 around (1,0), (−1,1), (−0.5,−0.5), keys without the third coordinate; six "
                "starts p = (q,0,0), q from 1 to −1.5; 999 normalized gradient steps of 0.1 and plain gradient steps "
                "of 1. Plain arithmetic adds 1e-12 to norms, as published. A run is a data set with all six starts; "
                "those without a p-SVM are drawn again.",
            .paper =
                "Max-Margin Token Selection in Attention Mechanism (arXiv 2306.13596), the figure of prompts on "
                "several inputs: the "
                "paths of all starts turn to the p-SVM direction; softmax weights of the optimal tokens go to one "
                "while the norm of p grows, linearly for normalized and logarithmically for plain gradient descent."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const Optimizer optimizer : {Optimizer::ngd, Optimizer::gd}) {
      const bool normalized = optimizer == Optimizer::ngd;
      for (const Arithmetic arithmetic : kArithmetics) {
        cells.push_back(
            {.name = fmt::format("{} {}", name_of(optimizer), name_of(arithmetic)),
             .settings = cell_settings({{"data", "multi-input"}, {"starts", kPromptStarts}},
                                       {.param = Parametrization::p,
                                        .optimizer = optimizer,
                                        .step = normalized ? 0.1 : 1.0,
                                        .steps = 999,
                                        .epsilon = normalized && arithmetic == Arithmetic::plain ? 1e-12 : 0,
                                        .arithmetic = arithmetic,
                                        .init = Init::zero}),
             .cost = 999 * 6 * 1.0});
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const TrainSettings training = recorded(cell.settings, path_steps);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      return run_one(training, draws.seed, draws.instance(k), alone);
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"optimizer", "normalized (ngd) or plain (gd) gradient steps"},
                             kArithmeticColumn,
                             {"start", "q of the start (q,0,0)"},
                             kStepColumn,
                             {"p1", "first coordinate of p, first data set"},
                             {"p2", "second"},
                             {"attention", "softmax weight of the optimal token, mean over inputs"},
                             {"norm", "of p"},
                             {"correlation", "of p with the p-SVM of the optimal tokens"}};
    for (const CellRows& rows : cells) {
      if (rows.results().empty()) continue;
      for (const Json& start : rows.results().front()->at("starts"))
        add_steps(rows.cell.settings, start, summary.table);
    }
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
    VerifyingSolver solver(alone);
    const MarginSolution svm = solver.solve(MarginProblem::attention(task, *task.select())),
                         plotted = solver.solve(MarginProblem::attention(published, *task.select()));
    if (svm.status == MarginStatus::infeasible) return StudyRow::rejected("p-SVM infeasible");
    if (!solver.verified()) return StudyRow::rejected(kNotVerified);
    const std::vector<Index> tokens = task.select()->firsts();
    Json starts = Json::array();
    double worst = 1;
    for (const double q : kPromptStarts) {
      const TrainedRun run = train(task, training, alone, {.W = (RowMatrix(3, 1) << q, 0, 0).finished()});
      const std::vector<double> list = correlations(run, svm.W);
      worst = std::min(worst, list.back());
      Json start{{"start", q}};
      add_prompt_path(run, start);
      start["attention"] =
          json_list(along(run, [&](const Record& record) { return mean_weight(task, record.W, tokens, alone); }));
      start["norm"] = json_list(along(run, [](const Record& record) { return record.norm; }));
      start["correlation"] = json_list(list);
      starts.push_back(std::move(start));
    }
    return {"",
            {{"worst_correlation", worst},
             {"svm", first_two(svm.W)},
             {"svm_plotted", {plotted.W(0, 0), plotted.W(1, 0), plotted.W(2, 0)}},
             {"plotted_correlation", correlation(svm.W, plotted.W)},
             {"starts", std::move(starts)}}};
  }

  static void draw(const std::vector<CellRows>& cells, Figure& figure) {
    figure = {.title = "Several inputs: every prompt turns to the p-SVM",
              .caption =
                  "First data set. (a, b) paths of p from six starts, exact directions; grey ray: the p-SVM of the "
                  "model's keys, black ray: the SVM of identity keys that the published figure shows, its first two "
                  "coordinates (it has a third). (c, d) start (1,0,0).",
              .columns = 2};
    Panel weight = over_steps("Softmax weight of the optimal tokens", "weight"), norm = over_steps("Norm of p", "norm");
    weight.y_range = {0, 1.02};
    norm.log_y = true;
    for (const CellRows& rows : cells) {
      if (rows.results().empty()) continue;
      const Json& result = *rows.results().front();
      const bool normalized = rows.cell.settings.at("optimizer") == "ngd",
                 exact = rows.cell.settings.at("arithmetic") == "exact";
      const std::string name = normalized ? "normalized steps" : "plain steps";
      const double reach = normalized ? 8 : 5;
      if (exact) {
        Panel panel = plane(fmt::format("Paths, {}", name), {-2, reach}, {-1.5, 1.5});
        panel.square = false;
        panel.curves = {ray("p-SVM", 7, result.at("svm"), 2 * reach),
                        ray("p-SVM as plotted", 6, result.at("svm_plotted"), 2 * reach)};
        int style = 0;
        for (const Json& start : result.at("starts"))
          panel.curves.push_back(
              curve_of(start, "p1", "p2", fmt::format("start ({}, 0, 0)", start.at("start").get<double>()), style++));
        figure.panels.push_back(std::move(panel));
      }
      const Json& start = result.at("starts")[0];
      const std::string label = fmt::format("{}, {}", name, arithmetic_words(rows.cell.settings.at("arithmetic")));
      const int style = (normalized ? 0 : 1) + (exact ? 0 : 2);
      weight.curves.push_back(curve_of(start, "step", "attention", label, style));
      norm.curves.push_back(curve_of(start, "step", "norm", label, style));
      for (Panel* panel : {&weight, &norm})
        panel->curves.back().look = {.colour = normalized ? 0 : 1, .dash = exact ? 0 : 1};
    }
    figure.panels.push_back(std::move(weight));
    figure.panels.push_back(std::move(norm));
  }

  static void explain(const std::vector<CellRows>& cells, std::vector<Finding>& findings) {
    std::vector<std::string> ours;
    ours.reserve(cells.size());
    for (const CellRows& rows : cells)
      ours.push_back(fmt::format("{}: {}", rows.cell.name, words_of(sample_of(rows.results(), "worst_correlation"))));
    findings.push_back(
        {.paper = "All paths reach the p-SVM direction.",
         .ours = fmt::format("Correlation of the worst of six starts with the p-SVM after 999 steps: {}.",
                             fmt::join(ours, "; ")),
         .why = "Plain gradient steps grow the norm only logarithmically and are still turning."});
    if (cells.empty()) return;
    const Sample plotted = sample_of(cells.back().results(), "plotted_correlation");
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
