#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/panels.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

struct TokenCase {
  const char* name;
  double c;  // score of the third token
};
constexpr std::array kCases{TokenCase{"global", 0.9}, TokenCase{"local", 0.0}};

class SingleInput final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "single-input",
            .title = "One input: global and local limits of the prompt",
            .setting =
                "Prompt attention, one input with tokens (−0.1,1,1), (1,0,0.9), (0,0,c), keys without the third "
                "coordinate, v = e3, y = 1; c = 0.9 (global) and c = 0 (local); six starts p = (0,q,0), q from 1 to "
                "−1.5; 999 normalized gradient steps of 0.1. Plain arithmetic adds 1e-9 to norms, as published.",
            .paper =
                "Max-Margin Token Selection in Attention Mechanism (arXiv 2306.13596), the figure of prompts on one "
                "input: with equal "
                "scores of the other tokens every start turns to the p-SVM of the best token; otherwise some starts "
                "turn to the p-SVM of a locally optimal token."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const TokenCase& one : kCases) {
      for (const Arithmetic arithmetic : kArithmetics) {
        cells.push_back({.name = fmt::format("{} {}", one.name, name_of(arithmetic)),
                         .settings = cell_settings({{"case", one.name}, {"c", one.c}, {"starts", kPromptStarts}},
                                                   {.param = Parametrization::p,
                                                    .steps = 999,
                                                    .epsilon = arithmetic == Arithmetic::plain ? 1e-9 : 0,
                                                    .arithmetic = arithmetic,
                                                    .init = Init::zero}),
                         .runs = static_cast<Index>(kPromptStarts.size()),
                         .most_runs = static_cast<Index>(kPromptStarts.size()),
                         .cost = 999 * 0.5});
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const AttentionTask task = generate({.law = Law::single_input, .c = cell.settings.at("c")}, 0).task;
    const TrainSettings training = recorded(cell.settings, path_steps);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      const double q = kPromptStarts.at(draws.instance(k));
      return judge(task, train(task, training, alone, {.W = (RowMatrix(3, 1) << 0, q, 0).finished()}), q, alone);
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"case", "global: c = 0.9; local: c = 0"},
                             kArithmeticColumn,
                             {"start", "q of the start (0,q,0)"},
                             {"selected", "token selected at the end, from 1"},
                             kStepColumn,
                             {"p1", "first coordinate of p"},
                             {"p2", "second"},
                             {"correlation", "of p with the p-SVM of the selected token"}};
    summary.figure = {.title = "One input: where prompts go",
                      .caption =
                          "Paths of p from six starts; rays: p-SVM of the best token (token 1) and of token 2. (a, b) "
                          "exact directions, (c, d) plain arithmetic.",
                      .columns = 2};
    std::vector<Panel> exact, plain;
    for (const CellRows& rows : cells) {
      for (const Json* result : rows.results()) add_steps(rows.cell.settings, *result, summary.table);
      (rows.cell.settings.at("arithmetic") == "exact" ? exact : plain).push_back(draw(rows));
    }
    summary.figure.panels = std::move(exact);
    for (Panel& panel : plain) summary.figure.panels.push_back(std::move(panel));
    explain(cells, summary.findings);
    return summary;
  }

 private:
  static StudyRow judge(const AttentionTask& task, const TrainedRun& run, double q, Threads& alone) {
    VerifyingSolver solver(alone);
    const auto svm_of = [&](Index token) {
      return solver.solve(MarginProblem::attention(task, Selection::single(std::array{token})));
    };
    const Index selected = attention_map(task, run.W, alone).selected.front();
    const MarginSolution best = svm_of(0), other = svm_of(1), own = svm_of(selected);
    if (!solver.verified()) return StudyRow::rejected(kNotVerified);
    const std::vector<double> list = along(run, [&](const Record& record) {
      return own.status == MarginStatus::optimal ? correlation(record.W, own.W) : std::nan("");
    });
    Json result{{"start", q}, {"selected", selected + 1}};
    add_prompt_path(run, result);
    result.update({{"correlation", json_list(list)},
                   {"final_correlation", list.back()},
                   {"svm_token1", first_two(best.W)},
                   {"svm_token2", first_two(other.W)}});
    return {"", std::move(result)};
  }

  static Panel draw(const CellRows& rows) {
    constexpr double kReach = 8;
    const Json& s = rows.cell.settings;
    const std::string name = s.at("case");
    Panel panel =
        plane(fmt::format("{}, c = {}, {}", name, s.at("c").get<double>(), arithmetic_words(s.at("arithmetic"))),
              {-3, kReach}, {-3, kReach});
    const auto results = rows.results();
    if (results.empty()) return panel;
    panel.curves = {ray("p-SVM of token 1", 6, results.front()->at("svm_token1"), 2 * kReach),
                    ray("p-SVM of token 2", 7, results.front()->at("svm_token2"), 2 * kReach)};
    int style = 0;
    for (const Json* result : results)
      panel.curves.push_back(
          curve_of(*result, "p1", "p2", fmt::format("start (0, {}, 0)", result->at("start").get<double>()), style++));
    return panel;
  }

  static void explain(const std::vector<CellRows>& cells, std::vector<Finding>& findings) {
    std::vector<std::string> ours;
    for (const CellRows& rows : cells) {
      Index best = 0, other = 0;
      double least = 1;
      for (const Json* result : rows.results()) {
        const Index selected = result->at("selected");
        best += selected == 1 ? 1 : 0;
        other += selected == 2 ? 1 : 0;
        if (result->at("final_correlation").is_number())
          least = std::min(least, result->at("final_correlation").get<double>());
      }
      ours.push_back(
          fmt::format("{}: {} starts end at token 1, {} at token 2, correlation with that p-SVM at least {:.6f}",
                      rows.cell.name, best, other, least));
    }
    findings.push_back(
        {.paper = "With c = 0.9 all starts reach the p-SVM of the best token; with c = 0 some reach that of token 2.",
         .ours = fmt::format("{}.", fmt::join(ours, "; ")),
         .why = "The published runs are in single precision and drift from step 200 on; the selection is the same."});
  }
};

}  // namespace

std::unique_ptr<Study> single_input_study() { return std::make_unique<SingleInput>(); }

}  // namespace attsvm::internal
