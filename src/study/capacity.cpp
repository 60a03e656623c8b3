#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attsvm/task.h"
#include "study/panels.h"
#include "study/training.h"
#include "theory/capacity_draws.h"
#include "theory/row_dimension.h"

namespace attsvm::internal {
namespace {

/// One curve of the phase diagram: n varies around the transition.
struct Shape {
  QueryPattern pattern;
  Index T, d;
  double about;  ///< the statistical dimension of a query's rows, roughly: only n is chosen by it
};
constexpr QueryPattern kCross = QueryPattern::cross, kSelf = QueryPattern::self, kPrompt = QueryPattern::prompt;
constexpr std::array kShapes{Shape{kCross, 2, 8, 0.5},    Shape{kCross, 3, 8, 0.83},  Shape{kCross, 5, 8, 1.27},
                             Shape{kCross, 9, 8, 1.81},   Shape{kCross, 33, 8, 2.96}, Shape{kCross, 5, 4, 1.25},
                             Shape{kCross, 5, 12, 1.28},  Shape{kSelf, 3, 6, 0.83},   Shape{kSelf, 9, 6, 1.76},
                             Shape{kPrompt, 3, 36, 0.84}, Shape{kPrompt, 9, 36, 1.87}};
constexpr std::array kLoads{0.6, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4};
constexpr const char* kCapacityLabel = "share of selections";

std::string shape_name(const Shape& shape) {
  return fmt::format("{} T={} d={}", name_of(shape.pattern), shape.T, shape.d);
}

Recipe recipe_of_shape(const Shape& shape) { return {.T = shape.T, .d = shape.d, .pattern = shape.pattern}; }

Index unknowns_of(const Shape& shape) { return shape.d * query_size_of(recipe_of_shape(shape)); }

class CapacityStudy final : public Study {
 public:
  StudyFacts facts() const override {
    return {.name = "capacity",
            .title = "Which sizes can separate a random selection?",
            .setting =
                "Unit Gaussian tokens and queries, one random token per query is to be selected; cross attention with "
                "dz = d = 4, 8, 12, self attention with d = 6, prompts with d = 36; T from 2 to 33, n around the "
                "transition; 100 draws each. A draw counts as separable if its SVM is solved, else there is a "
                "certificate that no W exists.",
            .paper =
                "Our own: the papers show that large d suffices. A count of Cover's kind would put the transition at "
                "n(T−1) = 2·d·dz.",
            .published = false};
  }

  std::vector<StudyCell> cells() const override {
    std::vector<StudyCell> cells;
    for (const Shape& shape : kShapes) {
      for (const double load : kLoads) {
        const auto n = static_cast<Index>(std::lround(load * static_cast<double>(unknowns_of(shape)) / shape.about));
        cells.push_back({.name = fmt::format("{} n={}", shape_name(shape), n),
                         .settings = {{"attention", name_of(shape.pattern)}, {"n", n}, {"T", shape.T}, {"d", shape.d}},
                         .runs = 100,
                         .cost = static_cast<double>(n * shape.T * shape.d) / 100});
      }
    }
    return cells;
  }

  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads& threads) const override {
    Recipe recipe = recipe_of_shape(shape_of(cell));
    recipe.n = cell.settings.at("n");
    const std::vector<AttentionTask> tasks = draw_selections(recipe, draws, threads);
    return make_rows(draws.count, threads, [&](std::size_t k, Threads& alone) {
      VerifyingSolver solver(alone);
      const MarginSolution solution =
          solver.solve(MarginProblem::attention(tasks[k], optimal_tokens(tasks[k]).selection));
      if (!solver.verified()) return StudyRow::rejected(kNotVerified);
      return StudyRow{"", {{"separable", solution.status == MarginStatus::optimal}}};
    });
  }

  Summary summarise(const std::vector<CellRows>& cells) const override {
    Summary summary;
    summary.table.columns = {{"attention", "where queries come from"},
                             {"n", "queries"},
                             {"T", "tokens per sequence"},
                             {"d", "size of tokens"},
                             {"draws", "random selections"},
                             {"separable", "share of these that a W separates"},
                             {"low", "its 95 % Wilson interval"},
                             {"high", "the other end"},
                             {"count_ratio", "n(T−1)/(d·dz): Cover's count puts the transition at 2"},
                             {"load", "n·δ/(d·dz), δ the statistical dimension of a query's rows"},
                             {"predicted", "share that δ's law predicts"}};
    Threads alone(1);
    std::size_t at = 0;
    for (const Shape& shape : kShapes) {
      const std::vector<double> law = dimension_law(shape.T, shape.d, 0, alone);
      const auto unknowns = static_cast<double>(unknowns_of(shape));
      for (std::size_t k = 0; k < kLoads.size(); ++k) {
        const CellRows& rows = cells[at++];
        const Sample seen = sample_of(rows.results(), "separable");
        if (seen.count == 0) continue;
        const Index n = rows.cell.settings.at("n");
        const Interval interval = wilson(seen.mean, static_cast<double>(seen.count));
        summary.table.rows.push_back(Json::array(
            {name_of(shape.pattern), n, shape.T, shape.d, seen.count, seen.mean, interval.low, interval.high,
             static_cast<double>(n * (shape.T - 1)) / unknowns, static_cast<double>(n) * mean_dimension(law) / unknowns,
             separable_chance(law, n, unknowns_of(shape))}));
      }
    }
    draw(summary);
    explain(summary);
    return summary;
  }

 private:
  static const Shape& shape_of(const StudyCell& cell) {
    return *std::find_if(kShapes.begin(), kShapes.end(),
                         [&](const Shape& shape) { return cell.name.starts_with(shape_name(shape) + " "); });
  }

  static std::vector<const Json*> rows_of_shape(const Table& table, const Shape& shape) {
    std::vector<const Json*> rows;
    for (const Json& row : table.rows) {
      if (row[0] == name_of(shape.pattern) && row[2] == shape.T && row[3] == shape.d) rows.push_back(&row);
    }
    return rows;
  }

  static Curve shares(const Table& table, const Shape& shape, std::size_t x, std::string label, int style) {
    Curve curve{.label = std::move(label), .mark = Mark::bars, .style = style};
    for (const Json* row : rows_of_shape(table, shape)) {
      curve.x.push_back(row->at(x));
      curve.y.push_back(row->at(5));
      curve.low.push_back(row->at(6));
      curve.high.push_back(row->at(7));
    }
    return curve;
  }

  static Panel panel_at(std::string title, std::string x_label, double transition, std::string label) {
    Panel panel{
        .title = std::move(title), .x_label = std::move(x_label), .y_label = kCapacityLabel, .y_range = {{0, 1}}};
    panel.curves.push_back(
        {.label = std::move(label), .style = 7, .x = {transition, transition}, .y = {0, 1}, .thin = true});
    return panel;
  }

  static void draw(Summary& summary) {
    const Table& table = summary.table;
    summary.figure = {.title = "Which sizes can separate a random selection?",
                      .caption =
                          "Share of random selections that a W separates, every draw decided by a certificate; 95 % "
                          "Wilson intervals. (a) against Cover's count; (b)-(d) against the load n·δ/(d·dz), where δ "
                          "is the statistical dimension of a query's rows.",
                      .columns = 2};
    constexpr const char* kLoad = "load n·δ/(d·dz)";
    Panel count = panel_at("Cross attention, d = 8: Cover's count", "n(T − 1)/(d·dz)", 2, "conjectured"),
          load = panel_at("The same: statistical dimension", kLoad, 1, "load 1"),
          sizes = panel_at("Cross attention, T = 5", kLoad, 1, "load 1"),
          tied = panel_at("Self attention, d = 6, and prompts, d = 36", kLoad, 1, "load 1");
    count.log_x = true;
    count.x_range = {1, 20};
    for (Panel* panel : {&load, &sizes, &tied}) panel->x_range = {0.5, 1.5};
    int style = 0;
    for (const Shape& shape : kShapes) {
      const std::string tokens = fmt::format("T = {}", shape.T);
      if (shape.pattern == kCross && shape.d == 8) {
        count.curves.push_back(shares(table, shape, 8, tokens, style));
        load.curves.push_back(shares(table, shape, 9, tokens, style));
      }
      if (shape.pattern == kCross && shape.T == 5)
        sizes.curves.push_back(shares(table, shape, 9, fmt::format("d = {}", shape.d), style % 7));
      if (shape.pattern != kCross)
        tied.curves.push_back(
            shares(table, shape, 9, fmt::format("{}, {}", name_of(shape.pattern), tokens), (style - 7) % 7));
      ++style;
    }
    summary.figure.panels = {std::move(count), std::move(load), std::move(sizes), std::move(tied)};
  }

  static void explain(Summary& summary) {
    Index draws = 0, inside = 0;
    double off = 0;
    for (const Json& row : summary.table.rows) {
      draws += row[4].get<Index>();
      const double predicted = row[10];
      inside += predicted >= row[6].get<double>() && predicted <= row[7].get<double>() ? 1 : 0;
      off = std::max(off, std::abs(predicted - row[5].get<double>()));
    }
    // Where a curve crosses one half, as n(T−1)/(d·dz), by linear interpolation.
    std::vector<std::string> crossings;
    for (const Shape& shape : kShapes) {
      const auto rows = rows_of_shape(summary.table, shape);
      for (std::size_t k = 1; k < rows.size(); ++k) {
        const double above = rows[k - 1]->at(5), below = rows[k]->at(5);
        if (above < 0.5 || below >= 0.5) continue;
        const double from = rows[k - 1]->at(8), to = rows[k]->at(8);
        crossings.push_back(
            fmt::format("{} {:.1f}", shape_name(shape), from + (to - from) * (above - 0.5) / (above - below)));
        break;
      }
    }
    summary.findings = {
        {.paper = "Cover's count: half of the selections are separable at n(T−1)/(d·dz) = 2.",
         .ours = fmt::format("Half are separable at n(T−1)/(d·dz) = {}.", fmt::join(crossings, ", ")),
         .why = "The count is exact for T = 2, where every query has one row. The rows of one query share the selected "
                "token: they take up fewer dimensions than as many independent rows."},
        {.paper = "The law of a query's rows: half are separable at load 1, and the share is as predicted.",
         .ours =
             fmt::format("The prediction lies in {} of {} intervals of 95 % and is off by {:.2f} at most ({} draws).",
                         inside, summary.table.rows.size(), off, draws),
         .why = ""}};
  }
};

}  // namespace

std::unique_ptr<Study> capacity_study() { return std::make_unique<CapacityStudy>(); }

}  // namespace attsvm::internal
