// The atlas of optimizers and the rates, with a few short runs.
#include "study/atlas.h"

#include <cmath>

#include "study/figure.h"
#include "study/output.h"
#include "support.h"

namespace attsvm {
namespace {

using test::Scratch;

const Study& study_named(const std::string& name) {
  for (const auto& study : all_studies()) {
    if (study->facts().name == name) return *study;
  }
  throw std::logic_error("no study " + name);
}

/// The cell of that name, whose runs end after a few steps.
StudyCell short_cell(const Study& study, const std::string& name, Index steps) {
  for (StudyCell& cell : study.cells()) {
    if (cell.name != name) continue;
    for (Json& variant : cell.settings["variants"]) variant["steps"] = steps;
    return cell;
  }
  throw std::logic_error("no cell " + name);
}

TEST(Atlas, SettingsOfOptimizersComeBackFromTheStore) {
  for (const Variant& one : atlas_rows()) {
    EXPECT_EQ(words_of(training_of(json_of(one.training))), words_of(one.training)) << one.name;
  }
}

TEST(Atlas, RowsDependOnTheInstanceAlone) {
  const Study& atlas = study_named("atlas");
  for (const auto& [name, steps] : {std::pair{"matrix n=6 T=8 d=10", 60}, {"curves", 50}, {"adam", 750}}) {
    const StudyCell cell = short_cell(atlas, name, steps);
    Threads one(1), three(3);
    const std::vector<StudyRow> together = atlas.run(cell, {.seed = 3, .first = 0, .count = 3}, three);
    ASSERT_EQ(together.size(), 3U);
    for (Index k = 0; k < 3; ++k) {
      const std::vector<StudyRow> alone = atlas.run(cell, {.seed = 3, .first = k, .count = 1}, one);
      EXPECT_EQ(alone.front().result, together[static_cast<std::size_t>(k)].result) << name << " " << k;
    }
  }
}

TEST(Atlas, SharesAreAtMostOneAndLargestInTheOwnNorm) {
  const Study& atlas = study_named("atlas");
  StudyCell cell = short_cell(atlas, "matrix n=4 T=6 d=8", 1500);
  Json& variants = cell.settings["variants"];
  variants.erase(variants.begin() + 5, variants.end());  // the five norms' own descents
  Threads threads(2);
  const CellRows rows{.cell = cell, .rows = atlas.run(cell, {.seed = 1, .count = 4}, threads)};
  const Panel panel = matrix_panel(rows);
  const auto overview = matrix_overview(rows);
  ASSERT_EQ(overview.size(), 6U);
  EXPECT_EQ(overview[2][4].back(), '*') << "descent in max, share in max";
  EXPECT_NE(overview[2][3].back(), '*');
  ASSERT_EQ(panel.grid->values.size(), 5U);
  for (std::size_t r = 0; r < 5; ++r) {
    const int own = panel.grid->outlined[r];
    ASSERT_GE(own, 0);
    for (std::size_t c = 0; c < kAtlasNorms.size(); ++c) {
      const double share = panel.grid->values[r][c];
      EXPECT_LE(share, 1 + 1e-9);
      if (static_cast<int>(c) != own) {
        EXPECT_LT(share, panel.grid->values[r][static_cast<std::size_t>(own)]) << panel.grid->rows[r];
      }
    }
  }
}

TEST(Atlas, CountsRunsThatAreLeftOut) {
  CellRows rows;
  rows.rows = {{"", {{"a", kOverflowed}}},
               {"", {{"a", kNotSeparable}}},
               {"", {{"a", kNotVerified}}},
               {"", {{"a", {{"share", {1, 2}}}}}}};
  const Measured all = measured(rows, "a");
  EXPECT_EQ(all.overflowed, 1);
  EXPECT_EQ(all.not_separable, 1);
  EXPECT_EQ(all.not_verified, 1);
  ASSERT_EQ(all.runs.size(), 1U);
  EXPECT_EQ(sample_at(all.runs, "share", 1).mean, 2);
}

TEST(Atlas, IsSummarisedWithoutAnyRuns) {
  const Scratch scratch;
  for (const std::string name :
       {"atlas", "rates", "positions", "decay", "capacity", "next-token", "router", "heads", "layers"}) {
    std::vector<CellRows> cells;
    for (StudyCell& cell : study_named(name).cells()) cells.push_back({.cell = std::move(cell)});
    const Summary summary = study_named(name).summarise(cells);
    for (const Json& row : summary.table.rows) EXPECT_EQ(row.size(), summary.table.columns.size());
    for (const auto& line : summary.overview) EXPECT_EQ(line.size(), summary.overview.front().size());
    for (const Finding& finding : summary.findings) {
      EXPECT_FALSE(finding.paper.empty());
      EXPECT_EQ(finding.ours.find("nan"), std::string::npos) << finding.ours;
    }
    test::write_contents(scratch.file("figure.gp"), gnuplot_script(summary.figure, {}));
    std::string problem;
    EXPECT_NE(draw_figure(scratch.file("figure.gp"), "svg", problem).find("</svg>"), std::string::npos) << problem;
  }
}

TEST(Decay, RunsSettleWhereExpected) {
  const Study& decay = study_named("decay");
  Threads threads(2);
  std::vector<CellRows> cells;
  for (StudyCell& cell : decay.cells()) {
    auto rows = decay.run(cell, {.count = 2}, threads);
    cells.push_back({.cell = std::move(cell), .rows = std::move(rows)});
  }
  const Summary summary = decay.summarise(cells);
  ASSERT_EQ(summary.table.rows.size(), 16U) << "4 decays, 3 chances of dropout, 5 smoothings, 4 batch sizes";
  EXPECT_EQ(summary.findings.size(), 4U);
  for (const Json& row : summary.table.rows) EXPECT_EQ(row.size(), summary.table.columns.size());
  double norm = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    const Json& row = summary.table.rows[k];
    EXPECT_GT(row.at(3).get<double>(), norm) << "less decay, larger norm";
    norm = row.at(3);
    EXPECT_LT(row.at(5).get<double>(), 1e-8);
  }
  const auto named = [&](std::size_t row, const std::string& name) {
    for (std::size_t k = 0; k < summary.table.columns.size(); ++k) {
      if (summary.table.columns[k].name == name) return summary.table.rows[row].at(k).get<double>();
    }
    throw std::logic_error("no column " + name);
  };
  for (std::size_t k = 7; k < 12; ++k) EXPECT_NEAR(named(k, "output"), named(k, "limit"), 0.05);
  for (std::size_t k = 12; k < 16; ++k) EXPECT_NEAR(named(k, "gd"), named(15, "gd"), 0.1 * named(15, "gd"));
  EXPECT_GT(named(12, "ngd"), 100 * named(13, "ngd")) << "normalized steps on single queries lead elsewhere";
}

TEST(Rates, CorrelationsAreGivenWhereTheOptimumIsUnique) {
  const Study& rates = study_named("rates");
  Threads threads(2);
  for (const std::string name : {"ngd", "steepest:max"}) {
    const StudyCell cell = short_cell(rates, name, 200);
    const CellRows rows{.cell = cell, .rows = rates.run(cell, {.count = 2}, threads)};
    for (const Json* run : measured(rows, name).runs) {
      EXPECT_EQ(run->contains("correlation"), run->at("unique").get<bool>());
      if (name == "ngd") {
        EXPECT_LT(run->at("correlation_slope").get<double>(), 0);
      }
    }
  }
}

TEST(Figure, GridsShowEveryNumberAndEscapeNames) {
  const Scratch scratch;
  const Figure figure{.title = "t",
                      .panels = {{.title = "p",
                                  .grid = Grid{.rows = {"a_b", "it's"},
                                               .columns = {"x", "y"},
                                               .values = {{0.25, NAN}, {0.75, 1}},
                                               .errors = {{0.01, NAN}, {0.02, 0}},
                                               .outlined = {0, -1}}}}};
  test::write_contents(scratch.file("figure.gp"), gnuplot_script(figure, {}));
  std::string problem;
  const std::string svg = draw_figure(scratch.file("figure.gp"), "svg", problem);
  for (const char* text : {"0.250", "0.750", "1.000", "a_b", "it's"})
    EXPECT_NE(svg.find(text), std::string::npos) << text << problem;
}

}  // namespace
}  // namespace attsvm
