#include <fmt/format.h>

#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "study/instances.h"
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
    return {
        .name = "single-input",
        .title = "One input: global and local limits of the prompt",
        .setting =
            "Prompt attention, one input with tokens (−0.1,1,1), (1,0,0.9), (0,0,c), keys without the third "
            "coordinate, v = e3, y = 1; "
            "c = 0.9 (global) and c = 0 (local); six starts p = (0,q,0), q from 1 to −1.5; 999 normalized gradient "
            "steps of "
            "0.1. Plain arithmetic adds 1e-9 to norms, as published.",
        .paper =
            "Max-Margin Token Selection: with equal scores of the other tokens every start turns to the p-SVM of the "
            "best token; otherwise some starts turn to the p-SVM of a locally optimal token."};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const TokenCase& one : kCases) {
      for (const Arithmetic arithmetic : {Arithmetic::plain, Arithmetic::exact}) {
        Json settings{{"case", one.name}, {"c", one.c}, {"starts", kPromptStarts}};
        settings.update(json_of({.param = Parametrization::p,
                                 .steps = 999,
                                 .epsilon = arithmetic == Arithmetic::plain ? 1e-9 : 0,
                                 .arithmetic = arithmetic,
                                 .init = Init::zero}));
        cells.push_back({.name = fmt::format("{} {}", one.name, name_of(arithmetic)),
                         .settings = std::move(settings),
                         .runs = static_cast<Index>(kPromptStarts.size()),
                         .most_runs = static_cast<Index>(kPromptStarts.size()),
                         .cost = 999 * 0.5});
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, std::uint64_t, std::uint32_t first, std::uint32_t count,
                            Threads& threads) const override {
    const AttentionTask task = generate({.law = Law::single_input, .c = cell.settings.at("c")}, 0).task;
    TrainSettings training = training_of(cell.settings);
    training.record.at = path_steps(training.steps);
    std::vector<StudyRow> rows(count);
    for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      const double q = kPromptStarts.at(first + k);
      const TrainedRun run = train(task, training, alone, {.W = (RowMatrix(3, 1) << 0, q, 0).finished()});
      rows[k] = judge(task, run, q, alone);
    });
    return rows;
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"case", "global: c = 0.9; local: c = 0"},
                             {"arithmetic", "plain doubles, or exact directions"},
                             {"start", "q of the start (0,q,0)"},
                             {"selected", "token selected at the end, from 1"},
                             {"step", "gradient steps taken"},
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
      add_rows(rows, summary.table);
      (rows.cell.settings.at("arithmetic") == "exact" ? exact : plain).push_back(draw(rows));
    }
    summary.figure.panels = std::move(exact);
    for (Panel& panel : plain) summary.figure.panels.push_back(std::move(panel));
    explain(cells, summary.findings);
    return summary;
  }

 private:
  static MarginSolution svm_of(const AttentionTask& task, Index token, Threads& alone, bool& verified) {
    MarginSolver solver(alone);
    const std::array tokens{token};
    return solve_verified(MarginProblem::attention(task, Selection::single(tokens)), Norm::frobenius(), solver,
                          verified);
  }

  static StudyRow judge(const AttentionTask& task, const TrainedRun& run, double q, Threads& alone) {
    bool verified = true;
    const Index selected = attention_map(task, run.W, alone).selected.front();
    const MarginSolution best = svm_of(task, 0, alone, verified), other = svm_of(task, 1, alone, verified),
                         own = svm_of(task, selected, alone, verified);
    if (!verified) return {"SVM not verified", Json::object()};
    std::vector<double> list;
    for (const Record& record : run.records)
      list.push_back(own.status == MarginStatus::optimal ? correlation(record.W, own.W) : std::nan(""));
    return {"",
            {{"start", q},
             {"selected", selected + 1},
             {"step", json_list(steps_of(run))},
             {"p1", json_list(coordinate(run, 0))},
             {"p2", json_list(coordinate(run, 1))},
             {"correlation", json_list(list)},
             {"final_correlation", list.back()},
             {"svm_token1", {best.W(0, 0), best.W(1, 0)}},
             {"svm_token2", {other.W(0, 0), other.W(1, 0)}}}};
  }

  static void add_rows(const CellRows& rows, Table& table) {
    for (const Json* result : rows.results()) {
      for (std::size_t k = 0; k < result->at("step").size(); ++k) {
        table.rows.push_back(Json::array({rows.cell.settings.at("case"), rows.cell.settings.at("arithmetic"),
                                          result->at("start"), result->at("selected"), result->at("step")[k],
                                          result->at("p1")[k], result->at("p2")[k], result->at("correlation")[k]}));
      }
    }
  }

  static Panel draw(const CellRows& rows) {
    constexpr double kReach = 8;
    const std::string name = rows.cell.settings.at("case");
    Panel panel = plane(fmt::format("{}, c = {}, {}", name, rows.cell.settings.at("c").get<double>(),
                                    arithmetic_words(rows.cell.settings.at("arithmetic"))),
                        kReach);
    panel.x_range = {{-3, kReach}};
    panel.y_range = {{-3, kReach}};
    if (name == "global") panel.key.clear();  // the panel to the right of it has the same legend
    const auto results = rows.results();
    if (results.empty()) return panel;
    const Json &best = results.front()->at("svm_token1"), &other = results.front()->at("svm_token2");
    panel.curves.push_back(ray("p-SVM of token 1", 6, best[0], best[1], 2 * kReach));
    panel.curves.push_back(ray("p-SVM of token 2", 7, other[0], other[1], 2 * kReach));
    for (std::size_t k = 0; k < results.size(); ++k) {
      panel.curves.push_back({.label = fmt::format("start (0, {}, 0)", results[k]->at("start").get<double>()),
                              .style = static_cast<int>(k),
                              .x = numbers_list(results[k]->at("p1")),
                              .y = numbers_list(results[k]->at("p2"))});
    }
    return panel;
  }

  static void explain(const std::vector<CellRows>& cells, std::vector<Finding>& findings) {
    std::string ours;
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
      ours += fmt::format("{}{}: {} starts end at token 1, {} at token 2, correlation with that p-SVM at least {:.6f}",
                          ours.empty() ? "" : "; ", rows.cell.name, best, other, least);
    }
    findings.push_back(
        {.paper = "With c = 0.9 all starts reach the p-SVM of the best token; with c = 0 some reach that of token 2.",
         .ours = ours + ".",
         .why = "The published runs are in single precision and drift from step 200 on; the selection is the same."});
  }
};

}  // namespace

std::unique_ptr<Study> single_input_study() { return std::make_unique<SingleInput>(); }

}  // namespace attsvm::internal
