#include "study/sweep_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/samples.h"

namespace attsvm::internal {
namespace {

/// What stands on the x axis, in words.
std::string axis_words(const std::string& setting) {
  if (setting == "n") return "number n of sequences";
  if (setting == "T") return "tokens per sequence T";
  if (setting == "d") return "size d of tokens";
  if (setting == "dz") return "size dz of queries";
  if (setting == "step") return "size of a step";
  if (setting == "steps") return "steps of training";
  if (setting == "file") return "file, in the order of the table";
  return "setting, in the order of the table";
}

/// The place of a text in a list, which gains it if it is new.
int place_in(std::vector<std::string>& list, const std::string& text) {
  const auto found = std::find(list.begin(), list.end(), text);
  if (found != list.end()) return static_cast<int>(found - list.begin());
  list.push_back(text);
  return static_cast<int>(list.size()) - 1;
}

/// Which curve a point of the sweep belongs to, and where it is on the x axis.
struct Place {
  std::string label;
  Look look;
  double x = 0;
};

std::vector<Place> places_of(const SweepPlan& plan) {
  std::vector<Place> places;
  std::vector<std::string> colours, dashes, files;
  for (std::size_t k = 0; k < plan.points.size(); ++k) {
    Place place{.x = static_cast<double>(k) + 1};
    std::string colour, dash;
    for (std::size_t s = 0; s < plan.settings.size(); ++s) {
      const auto& [name, varied] = plan.settings[s];
      const Json& value = plan.points[k].values[s];
      if (name == plan.x) place.x = value.is_number() ? value.get<double>() : place_in(files, text_of(value)) + 1;
      if (!varied || name == plan.x) continue;
      const std::string text = fmt::format("{} = {}", name, text_of(value));
      place.label += (place.label.empty() ? "" : ", ") + text;
      (colour.empty() ? colour : dash) += text;
    }
    place.look = {.colour = place_in(colours, colour), .dash = place_in(dashes, dash)};
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::size_t measure_column(const SweepPlan& plan, std::size_t m) { return plan.settings.size() + 2 + 3 * m; }

Figure sweep_figure(const SweepPlan& plan, const Table& table) {
  Figure figure{.title = plain_label(plan.title),
                .caption = "Means over runs; bars are one standard deviation, and 95 % Wilson intervals of shares.",
                .columns = std::min(2, static_cast<int>(plan.measures.size()))};
  const std::vector<Place> places = places_of(plan);
  for (std::size_t m = 0; m < plan.measures.size(); ++m) {
    const SweepMeasure& measure = sweep_measure(plan.measures[m]);
    Panel panel{.title = plain_label(measure.name),
                .x_label = axis_words(plan.x),
                .y_label = measure.words,
                .log_x = plan.x == "step" || plan.x == "steps"};
    if (measure.share) panel.y_range = {0, 1};
    std::vector<std::string> labels;
    for (std::size_t k = 0; k < table.rows.size(); ++k) {
      const Place& place = places[k];
      const auto at = static_cast<std::size_t>(place_in(labels, place.label));
      if (at == panel.curves.size())
        panel.curves.push_back(
            {.label = plain_label(place.label), .mark = Mark::bars, .style = static_cast<int>(at), .look = place.look});
      Curve& curve = panel.curves[at];
      const Json& row = table.rows[k];
      const std::size_t column = measure_column(plan, m);
      const double mean = row[column], sd = row[column + 1], count = row[column + 2],
                   spread = std::isfinite(sd) ? sd : 0;
      const double top = measure.up_to_one ? std::min(1.0, mean + spread) : mean + spread;
      const Interval bar = measure.share ? wilson(mean, count) : Interval{mean - spread, top};
      curve.x.push_back(place.x);
      curve.y.push_back(mean);
      curve.low.push_back(bar.low);
      curve.high.push_back(bar.high);
    }
    figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace attsvm::internal
