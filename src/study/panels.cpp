#include "study/panels.h"

#include <cmath>

namespace attsvm::internal {

Curve curve_of(const Json& result, const std::string& x, const std::string& y, std::string label, int style) {
  return {.label = std::move(label), .style = style, .x = numbers_list(result.at(x)), .y = numbers_list(result.at(y))};
}

Curve mean_over_steps(const MeanCurve& mean, const std::vector<Index>& steps, std::string label, int style) {
  Curve curve{.label = std::move(label), .style = style};
  for (std::size_t k = 1; k < mean.mean.size(); ++k) {
    curve.x.push_back(static_cast<double>(steps[k]));
    curve.y.push_back(mean.mean[k]);
  }
  return curve;
}

Curve ray(std::string label, int style, const Json& direction, double length) {
  const double x = direction.at(0), y = direction.at(1), scale = length / std::hypot(x, y);
  return {.label = std::move(label), .style = style, .x = {0, scale * x}, .y = {0, scale * y}};
}

Panel plane(std::string title, std::pair<double, double> x_range, std::pair<double, double> y_range) {
  return {.title = std::move(title),
          .x_label = "first coordinate",
          .y_label = "second coordinate",
          .x_range = x_range,
          .y_range = y_range,
          .square = true};
}

Panel over_steps(std::string title, std::string y_label, double last) {
  Panel panel{.title = std::move(title), .x_label = "steps", .y_label = std::move(y_label), .log_x = true};
  if (last > 0) panel.x_range = {1, last};
  return panel;
}

Panel distance_over_steps(std::string title, double last) {
  Panel panel = over_steps(std::move(title), "1 − correlation", last);
  panel.log_y = true;
  return panel;
}

std::string arithmetic_words(const std::string& name) { return name == "plain" ? "plain arithmetic" : "exact"; }

}  // namespace attsvm::internal
