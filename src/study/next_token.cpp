#include "attsvm/next_token.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "study/panels.h"
#include "study/training.h"

namespace attsvm::internal {
namespace {

constexpr Index kGraphSteps = 20'000, kGraphTasks = 50;
constexpr const char *kWithFrobenius = "distance_fro", *kWithNuclear = "distance_nuc", *kFinite = "finite_distance";

struct Corpus {
  Index n, T, d, vocabulary;
};
constexpr std::array kCorpora{Corpus{6, 4, 8, 6}, Corpus{16, 6, 12, 8}};

std::string size_words(const Json& settings) {
  return fmt::format("n = {}, K = {}", settings.at("n").get<Index>(), settings.at("K").get<Index>());
}

bool of_product(const CellRows& rows) { return rows.cell.settings.at("param") == "KQ"; }

/// Distances of a run from the directions of both graph SVMs, and from the finite part where tokens are tied.
StudyRow judge_next_token(const AttentionTask& task, const TrainedRun& run, Threads& alone) {
  const std::vector<PriorityGraph> graphs = priority_graphs(task);
  const bool strict =
      std::any_of(graphs.begin(), graphs.end(), [](const PriorityGraph& graph) { return graph.orders() > 0; });
  if (!strict) return StudyRow::rejected("no strict order");
  const MarginProblem problem = MarginProblem::graph(task, graphs);
  VerifyingSolver solver(alone);
  const MarginSolution smallest = solver.solve(problem);
  if (smallest.status == MarginStatus::infeasible) return StudyRow::rejected("graph SVM infeasible");
  const MarginSolution nuclear = solver.solve(problem, Norm::nuclear());
  if (!solver.verified()) return StudyRow::rejected(kNotVerified);
  StudyRow row;
  const auto distances = [&](const RowMatrix& W) {
    return json_list(along(run, [&](const Record& record) { return 1 - correlation(record.W, W); }));
  };
  row.result[kWithFrobenius] = distances(smallest.W);
  row.result[kWithNuclear] = distances(nuclear.W);
  const FinitePart finite(task, graphs);
  row.result["tied"] = finite.dimension() > 0;
  if (finite.dimension() > 0) {
    row.result["finite_norm"] = finite.W().norm();
    row.result[kFinite] =
        json_list(along(run, [&](const Record& record) { return (finite.project(record.W) - finite.W()).norm(); }));
  }
  return row;
}

std::vector<const Json*> tied_runs(const CellRows& rows) {
  std::vector<const Json*> list;
  for (const Json* result : rows.results()) {
    if (result->at("tied").get<bool>()) list.push_back(result);
  }
  return list;
}

class NextToken final : public Study {
 public:
  StudyFacts facts() const override {
    return {
        .name = "next-token",
        .title = "Next tokens: W turns to the graph SVM, and a part of it stays finite",
        .setting = fmt::format(
            "Random next-token tasks: 6 sequences of 4 ids from a vocabulary of K = 6 with d = 8, and 16 sequences of "
            "6 "
            "from K = 8 with d = 12; W from zero and (K,Q) from a random start, {} steps of gradient descent with "
            "step 1, exact arithmetic; {} tasks each. Tasks without a strict order have no direction to turn to and "
            "are left out, and so are those whose orders no W keeps. The finite part is compared where tokens are "
            "tied. Every SVM is verified.",
            kGraphSteps, kGraphTasks),
        .paper =
            "Mechanics of Next Token Prediction with Self-Attention (arXiv 2403.08081) shows for W that its direction "
            "tends to the graph SVM's while the part of it among tied tokens tends to a finite point. That (K,Q) turns "
            "to the nuclear graph SVM is a conjecture.",
        .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const Corpus& one : kCorpora) {
      for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
        const Json own{{"n", one.n}, {"T", one.T}, {"d", one.d}, {"K", one.vocabulary}};
        cells.push_back(
            {.name = fmt::format("{} n={} K={}", name_of(param), one.n, one.vocabulary),
             .settings = cell_settings(own, {.param = param,
                                             .optimizer = Optimizer::gd,
                                             .step = 1,
                                             .steps = kGraphSteps,
                                             // K = Q = 0 is a point from which no gradient leads away.
                                             .init = param == Parametrization::KQ ? Init::random : Init::zero}),
             .runs = kGraphTasks,
             .cost = static_cast<double>(kGraphSteps * one.n * one.T) / 20});
      }
    }
    return cells;
  }

  Index batch() const override { return 8; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    Recipe recipe = recipe_of(cell.settings);
    recipe.law = Law::next_token;
    recipe.vocabulary = cell.settings.at("K");
    return train_and_judge(recipe, recorded(cell.settings, curve_steps), draws, threads, judge_next_token);
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"param", "what is trained"},
                             {"n", "sequences"},
                             {"K", "size of the vocabulary"},
                             kStepColumn,
                             {"runs", "accepted runs"},
                             {"tied_runs", "of these, runs on tasks with tied tokens"},
                             {kWithFrobenius, "mean 1 − correlation with the graph SVM in Frobenius norm"},
                             {kWithNuclear, "the same in nuclear norm"},
                             {kFinite, "mean distance from the finite part, tied runs"}};
    summary.figure = {
        .title = "Next tokens: direction and finite part",
        .caption =
            "Means over tasks. (a, b) distance of the direction of W from both graph SVMs; (c) distance "
            "of the part of W among tied tokens from the point that it should tend to.",
        .columns = 3,
        .panels = {distance_over_steps("W trained", kGraphSteps), distance_over_steps("K and Q trained", kGraphSteps),
                   over_steps("Finite part", "distance from W_{fin}", kGraphSteps)}};
    summary.figure.panels[2].log_y = true;
    for (const CellRows& rows : cells) {
      tabulate(rows, summary.table);
      draw(rows, summary.figure);
      explain(rows, summary.findings);
    }
    return summary;
  }

 private:
  static void tabulate(const CellRows& rows, Table& table) {
    const auto all = rows.results(), tied = tied_runs(rows);
    if (all.empty()) return;
    const Json& settings = rows.cell.settings;
    const std::vector<Index> steps = curve_steps(settings.at("steps"));
    const MeanCurve fro = mean_curve(all, kWithFrobenius), nuc = mean_curve(all, kWithNuclear),
                    finite = mean_curve(tied, kFinite);
    for (std::size_t k = 1; k < steps.size(); ++k) {
      table.rows.push_back(
          Json::array({settings.at("param"), settings.at("n"), settings.at("K"), steps[k], all.size(), tied.size(),
                       fro.mean[k], nuc.mean[k], tied.empty() ? Json() : Json(finite.mean[k])}));
    }
  }

  static void draw(const CellRows& rows, Figure& figure) {
    const auto all = rows.results(), tied = tied_runs(rows);
    const Json& settings = rows.cell.settings;
    const std::vector<Index> steps = curve_steps(settings.at("steps"));
    const std::string size = size_words(settings);
    const auto add = [&](Panel& panel, const std::vector<const Json*>& runs, const char* name, std::string label) {
      if (runs.empty()) return;
      const auto style = static_cast<int>(panel.curves.size());
      panel.curves.push_back(mean_over_steps(mean_curve(runs, name), steps, std::move(label), style));
    };
    Panel& panel = figure.panels[of_product(rows) ? 1 : 0];
    add(panel, all, kWithFrobenius, "Frobenius, " + size);
    add(panel, all, kWithNuclear, "nuclear, " + size);
    add(figure.panels[2], tied, kFinite, fmt::format("{}, {}", of_product(rows) ? "(K,Q)" : "W", size));
  }

  static void explain(const CellRows& rows, std::vector<Finding>& findings) {
    const auto all = rows.results(), tied = tied_runs(rows);
    const bool product = of_product(rows);
    Finding finding{.paper = fmt::format("{}, {}: the direction tends to the {} graph SVM, the finite part settles.",
                                         product ? "(K,Q)" : "W", size_words(rows.cell.settings),
                                         product ? "nuclear" : "Frobenius"),
                    .ours = "No run to judge by.",
                    .why = ""};
    if (!all.empty()) {
      const std::vector<Index> steps = curve_steps(rows.cell.settings.at("steps"));
      const std::size_t last = steps.size() - 1;
      const auto sample_at = [](const std::vector<const Json*>& runs, const char* name, std::size_t k) {
        std::vector<double> list;
        list.reserve(runs.size());
        for (const Json* run : runs) list.push_back(numbers_list(run->at(name)).at(k));
        return sample_of(list);
      };
      const auto end_of = [&](const std::vector<const Json*>& runs, const char* name) {
        return words_of(sample_at(runs, name, last));
      };
      finding.ours = fmt::format("At the end 1 − correlation is {} with the Frobenius and {} with the nuclear one",
                                 end_of(all, kWithFrobenius), end_of(all, kWithNuclear));
      finding.ours += tied.empty() ? "; no task has tied tokens"
                                   : fmt::format("; the finite part is {} off", end_of(tied, kFinite));
      const auto decade =  // the last point with at most a tenth of the steps
          static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), steps[last] / 10) - steps.begin()) - 1;
      if (!tied.empty() && decade > 0)
        finding.ours += fmt::format(", {:.3g} at step {}", sample_at(tied, kFinite, decade).mean, steps[decade]);
      finding.ours += ".";
    }
    findings.push_back(std::move(finding));
  }
};

}  // namespace

std::unique_ptr<Study> next_token_study() { return std::make_unique<NextToken>(); }

}  // namespace attsvm::internal
