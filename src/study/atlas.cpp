#include "study/atlas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/panels.h"

namespace attsvm::internal {
namespace {

struct AtlasSize {
  Index n, T, d, tasks;
};
constexpr std::array kAtlasSizes{AtlasSize{6, 8, 10, 100}, AtlasSize{4, 6, 8, 50}, AtlasSize{10, 6, 16, 20}};
constexpr Index kCurveTasks = 16, kDecomposedTasks = 4, kAdamTasks = 24;

Json atlas_size(const char* part, const AtlasSize& size) {
  return {{"part", part}, {"n", size.n}, {"T", size.T}, {"d", size.d}};
}

class Atlas final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "atlas",
            .title = "Which SVM does an optimizer solve?",
            .setting =
                "Random tasks, linear head, logistic loss; W from zero, (K,Q) from random starts; exact directions. "
                "Matrix: 17 optimizers, 3,000 or 6,000 steps, 100 tasks (6,8,10), 50 (4,6,8), 20 (10,6,16). "
                "Curves: 100,000 steps, 16 tasks (4 where steps need singular values). Adam: steps of 0.003, 0.01 and "
                "0.03, seven β₂, 24,000 steps, 24 tasks. The SVMs are those of the tokens that each run selects.",
            .paper =
                "Ours; for softmax attention a conjecture: steepest descent in a norm maximises the margin in that "
                "norm. Proven elsewhere for linear models: arXiv 2502.04664 (entrywise and Schatten norms), 2406.10650 "
                "(Adam without ε); for smooth homogeneous networks 2602.16340 (Muon, Adam).",
            .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const AtlasSize& size : kAtlasSizes) {
      // Steps of singular values take most of the time, and it grows with the cube of d.
      const double slow = static_cast<double>(size.d * size.d * size.d);
      cells.push_back({.name = fmt::format("matrix n={} T={} d={}", size.n, size.T, size.d),
                       .settings = cell_settings(atlas_size("matrix", size), atlas_rows()),
                       .runs = size.tasks,
                       .cost = 3000 * 0.25 * slow});
    }
    for (const bool decomposed : {false, true}) {
      cells.push_back({.name = decomposed ? "curves of spec and nuc" : "curves",
                       .settings = cell_settings(atlas_size("curves", kAtlasSizes[0]), atlas_curves(decomposed)),
                       .runs = decomposed ? kDecomposedTasks : kCurveTasks,
                       .cost = 100'000 * (decomposed ? 100.0 : 10.0)});
    }
    cells.push_back({.name = "adam",
                     .settings = cell_settings(atlas_size("adam", kAtlasSizes[0]), atlas_adam()),
                     .runs = kAdamTasks,
                     .cost = 24'000 * 40});
    return cells;
  }

  Index batch() const override { return 8; }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    const std::string part = cell.settings.at("part");
    if (part == "matrix") return run_variants(cell.settings, draws, threads, nullptr, measure_matrix);
    return part == "adam" ? run_variants(cell.settings, draws, threads, adam_steps, measure_adam)
                          : run_variants(cell.settings, draws, threads, curve_steps, measure_curve);
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {
        {"part", "matrix, curves or adam"},
        {"n", "sequences"},
        {"T", "tokens per sequence"},
        {"d", "dimension"},
        {"optimizer", "how W or (K,Q) is trained"},
        {"norm", "of the margin"},
        kStepColumn,
        {"runs", "whose mean this is"},
        {"not_separable", "runs left out because no W separates the tokens they select"},
        {"share", "mean ρ: smallest row of W/norm(W), divided by the largest one there is"},
        {"share_error", "its standard error"},
        {"own", "1: the norm in which this optimizer is expected to maximise the margin"},
        {"gap", "adam: mean smallest row of W"},
        {"growth", "adam: its growth per step over the second half of the steps, median"},
        {"growth_predicted", "adam: the same, predicted"},
        {"faded", "adam: steps times predicted share that second moments forget per step, median"}};
    std::vector<CellRows> matrices;
    std::vector<const CellRows*> curves;
    std::vector<AdamPoint> adam;
    for (const CellRows& rows : cells) {
      const std::string part = rows.cell.settings.at("part");
      if (part == "matrix") {
        matrices.push_back(rows);
        add_matrix(rows, summary.table);
      } else if (part == "curves") {
        curves.push_back(&rows);
        add_curves(rows, summary.table);
      } else {
        adam = adam_points(rows);
        add_adam(rows, adam, summary.table);
      }
    }
    summary.figure = {
        .title = "Which SVM does an optimizer solve?",
        .caption =
            "(a to c) mean share ρ of the largest margin in each norm ± standard error, three sizes of tasks; framed: "
            "the norm expected. (d) distance from it along the run. (e) Adam without ε loses its SVM as β₂ grows; "
            "bars "
            "are two standard errors. (f) all these runs against one number that is computed without training: while "
            "it is below 1, second moments still hold early gradients. (g) markers: measured, lines: predicted. (h) "
            "with ε, gaps stop at about log 1/ε.",
        .columns = 2};
    for (const CellRows& rows : matrices) summary.figure.panels.push_back(matrix_panel(rows));
    summary.figure.panels.push_back(curves_panel(curves));
    for (Panel& panel : adam_panels(adam)) summary.figure.panels.push_back(std::move(panel));
    summary.findings = atlas_findings(matrices, adam);
    if (!matrices.empty()) summary.overview = matrix_overview(matrices.front());
    return summary;
  }

 private:
  static Json first_columns(const CellRows& rows, const std::string& optimizer, const std::string& norm, Index step,
                            const Measured& all, const Sample& share, bool own) {
    const Json& s = rows.cell.settings;
    return Json::array({s.at("part"), s.at("n"), s.at("T"), s.at("d"), optimizer, norm, step, share.count,
                        all.not_separable, share.mean, share.error(), own ? 1 : 0});
  }

  static void add_row(Json row, std::array<double, 4> rest, Table& table) {
    for (const double number : rest) row.push_back(std::isfinite(number) ? Json(number) : Json());
    table.rows.push_back(std::move(row));
  }

  static void add_matrix(const CellRows& rows, Table& table) {
    for (const Variant& one : variants_of(rows.cell.settings)) {
      const Measured all = measured(rows, one.name);
      for (std::size_t c = 0; c < kAtlasNorms.size(); ++c) {
        add_row(first_columns(rows, one.name, kAtlasNorms[c], one.training.steps, all, sample_at(all.runs, "shares", c),
                              own_norm(one.training) == kAtlasNorms[c]),
                {NAN, NAN, NAN, NAN}, table);
      }
    }
  }

  static void add_curves(const CellRows& rows, Table& table) {
    for (const Variant& one : variants_of(rows.cell.settings)) {
      const Measured all = measured(rows, one.name);
      const std::vector<Index> steps = curve_steps(one.training.steps);
      for (std::size_t k = 1; k < steps.size(); ++k) {
        add_row(
            first_columns(rows, one.name, own_norm(one.training), steps[k], all, sample_at(all.runs, "share", k), true),
            {NAN, NAN, NAN, NAN}, table);
      }
    }
  }

  static void add_adam(const CellRows& rows, const std::vector<AdamPoint>& points, Table& table) {
    for (const AdamPoint& one : points) {
      add_row(
          first_columns(rows, one.variant.name, "max", one.steps, measured(rows, one.variant.name), one.share, true),
          {one.gap.mean, one.growth, one.predicted, one.faded}, table);
    }
  }
};

}  // namespace

Panel matrix_panel(const CellRows& rows) {
  const Json& s = rows.cell.settings;
  Panel panel{.title = fmt::format("Share of the largest margin, n = {}, T = {}, d = {}", s.at("n").get<Index>(),
                                   s.at("T").get<Index>(), s.at("d").get<Index>()),
              .x_label = "norm of the margin",
              .y_label = "optimizer"};
  Grid grid{.columns = {kAtlasNorms.begin(), kAtlasNorms.end()}};
  for (const Variant& one : variants_of(s)) {
    const Measured all = measured(rows, one.name);
    const std::string own = own_norm(one.training);
    grid.rows.push_back(one.name);
    grid.outlined.push_back(-1);
    grid.values.emplace_back();
    grid.errors.emplace_back();
    for (std::size_t c = 0; c < kAtlasNorms.size(); ++c) {
      const Sample share = sample_at(all.runs, "shares", c);
      if (own == kAtlasNorms[c]) grid.outlined.back() = static_cast<int>(c);
      grid.values.back().push_back(share.mean);
      grid.errors.back().push_back(share.error());
    }
  }
  panel.grid = std::move(grid);
  return panel;
}

Panel curves_panel(const std::vector<const CellRows*>& cells) {
  Panel panel = over_steps("1 − ρ in the optimizer's own norm", "1 − ρ, mean over tasks", 100'000);
  panel.log_y = true;
  panel.x_range = {{10, 100'000}};
  panel.y_range = {{1e-4, 1}};
  for (const CellRows* rows : cells) {
    for (const Variant& one : variants_of(rows->cell.settings)) {
      const std::vector<const Json*> runs = measured(*rows, one.name).runs;
      if (runs.empty()) continue;
      Curve curve = mean_over_steps(mean_curve(runs, "share"), curve_steps(one.training.steps), one.name,
                                    static_cast<int>(panel.curves.size()));
      for (double& y : curve.y) y = 1 - y;
      panel.curves.push_back(std::move(curve));
    }
  }
  return panel;
}

std::unique_ptr<Study> atlas_study() { return std::make_unique<Atlas>(); }

}  // namespace attsvm::internal
