#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/atlas.h"
#include "study/panels.h"
#include "theory/adam_pace.h"
#include "theory/claim_tools.h"
#include "train/optimizers.h"

namespace attsvm::internal {
namespace {

AdamPace pace_of(const AdamPoint& one, double margin) {
  return adam_pace(one.variant.training.step, one.betas[0], one.betas[1], margin);
}

/// Curves of points with the same step size, in the order of the points.
std::vector<Curve> curves_by_step(const std::vector<AdamPoint>& points, Index steps,
                                  const std::function<double(const AdamPoint&)>& x,
                                  const std::function<double(const AdamPoint&)>& y, Mark mark) {
  std::vector<Curve> curves;
  double step = 0;
  for (const AdamPoint& one : points) {
    if (one.epsilon > 0 || (steps > 0 && one.steps != steps)) continue;
    if (curves.empty() || one.variant.training.step != step) {
      step = one.variant.training.step;
      curves.push_back({.label = fmt::format("step {}", step), .mark = mark, .style = static_cast<int>(curves.size())});
    }
    curves.back().x.push_back(x(one));
    curves.back().y.push_back(y(one));
    if (mark != Mark::bars) continue;
    curves.back().low.push_back(one.share.mean - 2 * one.share.error());
    curves.back().high.push_back(one.share.mean + 2 * one.share.error());
  }
  return curves;
}

/// Smallest gap from which on W is far enough out for its direction to be near its limit; and the range of 1 − b2.
constexpr double kFar = 20;
constexpr std::pair kForgettingRange{8e-4, 0.15};

double forgetting(const AdamPoint& one) { return 1 - one.betas[1]; }

}  // namespace

std::vector<AdamPoint> adam_points(const CellRows& rows) {
  std::vector<AdamPoint> points;
  for (const Variant& one : variants_of(rows.cell.settings)) {
    const std::vector<const Json*> runs = measured(rows, one.name).runs;
    const std::vector<Index> steps = adam_steps(one.training.steps);
    for (std::size_t at = 1; at < steps.size(); ++at) {
      const TrainSettings whole = completed(one.training);
      AdamPoint point{.variant = one, .betas = *whole.betas, .epsilon = *whole.epsilon, .steps = steps[at]};
      std::vector<double> growth, predicted, faded;
      for (const Json* run : runs) {
        const std::vector<double> gap = numbers_list(run->at("gap"));
        if (gap.size() != steps.size()) continue;  // ended early
        const AdamPace pace = pace_of(point, numbers_list(run->at("margin"))[at]);
        growth.push_back((gap[at] - gap[at - 1]) / static_cast<double>(steps[at] - steps[at - 1]));
        predicted.push_back(pace.growth);
        faded.push_back(pace.fading * static_cast<double>(steps[at]));
      }
      point.share = sample_at(runs, "share", at);
      point.gap = sample_at(runs, "gap", at);
      point.margin = sample_at(runs, "margin", at).mean;
      point.growth = median(growth);
      point.predicted = median(predicted);
      point.faded = median(faded);
      points.push_back(std::move(point));
    }
  }
  return points;
}

std::vector<Panel> adam_panels(const std::vector<AdamPoint>& points) {
  if (points.empty()) return {};
  const Index last = points.back().steps;
  Panel turn{.title = fmt::format("Adam, ε = 0: ρ_{{max}} after {} steps", last),
             .x_label = "1 − β₂",
             .y_label = "ρ_{max}",
             .log_x = true,
             .x_range = kForgettingRange,
             .y_range = {{0.3, 1.02}}};
  turn.curves = curves_by_step(
      points, last, forgetting, [](const AdamPoint& one) { return one.share.mean; }, Mark::bars);
  Panel collapse{.title = "The same after 750 to 24,000 steps, gaps above 20",
                 .x_label = "predicted: steps × (1 − β₂ e^{2r})",
                 .y_label = "ρ_{max}",
                 .log_x = true,
                 .y_range = {{0.3, 1.02}}};
  std::vector<AdamPoint> far;
  for (const AdamPoint& one : points) {
    if (one.gap.mean >= kFar) far.push_back(one);
  }
  collapse.curves = curves_by_step(
      far, 0, [](const AdamPoint& one) { return one.faded; }, [](const AdamPoint& one) { return one.share.mean; },
      Mark::points);
  Panel pace{.title = "Growth of the smallest gap per step",
             .x_label = "1 − β₂",
             .y_label = "growth",
             .log_x = true,
             .log_y = true,
             .x_range = kForgettingRange};
  pace.curves = curves_by_step(
      points, last, forgetting, [](const AdamPoint& one) { return one.growth; }, Mark::points);
  std::vector<Curve> lines = curves_by_step(
      points, last, forgetting, [](const AdamPoint& one) { return one.predicted; }, Mark::line);
  for (Curve& line : lines) {
    line.label = &line == &lines.front() ? "predicted" : "";
    line.thin = true;
    pace.curves.push_back(std::move(line));
  }
  Panel stall{.title = "Adam with ε, β₂ = 0.95, step 0.01",
              .x_label = "steps",
              .y_label = "smallest gap",
              .log_x = true,
              .log_y = true};
  for (const AdamPoint& one : points) {
    if (one.variant.training.step != 0.01 || one.betas[1] != 0.95) continue;
    const std::string label = fmt::format("ε = {}", one.epsilon);
    auto curve = std::find_if(stall.curves.begin(), stall.curves.end(),
                              [&](const Curve& known) { return known.label == label; });
    if (curve == stall.curves.end())
      curve = stall.curves.insert(curve, {.label = label, .style = static_cast<int>(stall.curves.size())});
    curve->x.push_back(static_cast<double>(one.steps));
    curve->y.push_back(one.gap.mean);
  }
  return {std::move(turn), std::move(collapse), std::move(pace), std::move(stall)};
}

}  // namespace attsvm::internal
