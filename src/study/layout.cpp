#include "study/layout.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace attsvm::internal {
namespace {

constexpr double kPanelWidth = 430, kNarrow = 250, kNarrowest = 150;  // of a panel with its labels
constexpr double kWider = 150, kRowNames = 95, kGridRow = 27;  // of grids: further width, room for names, row height
constexpr double kLeft = 76, kRight = 22, kTop = 34, kBottom = 52, kBetween = 8;
constexpr double kFlat = 0.65;         // height of axes over their width
constexpr double kUsualPoints = 9;     // font size, in points
constexpr double kPixels = 96 / 25.4;  // per millimetre

/// Where the word that begins at `at` ends. A difference, such as 1 − c, counts as one word.
std::size_t end_of_word(std::string_view text, std::size_t at) {
  constexpr std::string_view kMinus = "−";
  std::size_t end = text.find(' ', at);
  while (end != text.npos && (text.substr(end + 1).starts_with(kMinus) || text.substr(at, end - at).ends_with(kMinus)))
    end = text.find(' ', end + 1);
  return std::min(end, text.size());
}

/// Lines of at most so many letters, broken at words.
std::vector<std::string> broken(const std::string& text, double letters) {
  if (text.empty()) return {};
  std::vector<std::string> lines(1);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = end_of_word(text, at);
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && static_cast<double>(lines.back().size() + 1 + word.size()) > letters)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    at = end + 1;
  }
  return lines;
}

bool same_look(const Curve& a, const Curve& b) {
  return a.label == b.label && a.mark == b.mark && a.style == b.style && a.look == b.look;
}

bool same_legend(const std::vector<const Curve*>& a, const std::vector<const Curve*>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Curve* x, const Curve* y) { return same_look(*x, *y); });
}

class Arranger {
 public:
  Arranger(const Figure& figure, const FigureOptions& options) : figure_(figure), options_(options) {}

  Layout arrange() {
    layout_.scale = options_.font_size / kUsualPoints;
    arrange_columns();
    const double letter = 0.6 * layout_.scale;
    if (options_.titles) layout_.title = broken(figure_.title, layout_.width / (letter * kTitleText));
    double top = layout_.title.empty() ? scaled(kBetween) : scaled(20 + 1.2 * kLine * rows_of_text(layout_.title));
    const std::size_t count = figure_.panels.size();
    for (std::size_t first = 0; first < count; first += columns_) {
      top = arrange_row(first, std::min(first + columns_, count), top) + scaled(kBetween);
    }
    if (options_.titles)
      layout_.caption = broken(figure_.caption, (layout_.width - 2 * scaled(kMargin)) / (0.95 * letter * kCaptionText));
    layout_.height = std::ceil(top + scaled(kBetween) + scaled(kLine) * rows_of_text(layout_.caption));
    return std::move(layout_);
  }

 private:
  double scaled(double size) const { return size * layout_.scale; }
  static double rows_of_text(const std::vector<std::string>& lines) { return static_cast<double>(lines.size()); }

  /// Room for the title of a panel, if it has one.
  double above_axes() const { return scaled(options_.titles || figure_.panels.size() > 1 ? kTop : kBetween); }

  bool has_grid(std::size_t column) const {
    for (std::size_t k = column; k < figure_.panels.size(); k += columns_) {
      if (figure_.panels[k].grid) return true;
    }
    return false;
  }

  double natural_width(std::size_t column) const { return scaled(kPanelWidth + (has_grid(column) ? kWider : 0)); }

  /// Below this a panel gets a row of its own, and a lone one is no narrower. The numbers in a grid need their room.
  double least_width(std::size_t column) const {
    if (has_grid(column)) return natural_width(column);
    return scaled(columns_ > 1 ? kNarrow : kNarrowest);
  }

  double sum(double (Arranger::*width)(std::size_t) const) const {
    double total = 0;
    for (std::size_t c = 0; c < columns_; ++c) total += (this->*width)(c);
    return total;
  }

  void arrange_columns() {
    columns_ = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(1, figure_.columns)), 1,
                                       std::max<std::size_t>(1, figure_.panels.size()));
    const double wanted = std::round(options_.width * kPixels);
    while (wanted > 0 && columns_ > 1 && wanted < sum(&Arranger::least_width)) --columns_;
    const double natural = sum(&Arranger::natural_width), least = sum(&Arranger::least_width);
    starts_ = {0};
    for (std::size_t c = 0; c < columns_; ++c) {
      const double spare = std::max(0.0, wanted - least) * natural_width(c) / natural;
      starts_.push_back(starts_.back() + (wanted > 0 ? least_width(c) + spare : natural_width(c)));
    }
    layout_.width = std::round(starts_.back());
  }

  double axes_height(const Panel& panel, double width) const {
    if (panel.grid) return scaled(kGridRow) * static_cast<double>(panel.grid->rows.size());
    if (!panel.square) return kFlat * width;
    const auto span = [](const std::pair<double, double>& range) { return range.second - range.first; };
    return width * std::clamp(span(*panel.y_range) / span(*panel.x_range), 0.3, 1.0);
  }

  /// Panels first … last − 1 side by side, their legends below them. Returns where they end.
  double arrange_row(std::size_t first, std::size_t last, double top) {
    double height = 0;
    for (std::size_t k = first; k < last; ++k) {
      const Panel& panel = figure_.panels[k];
      const double left = starts_[k - first] + scaled(kLeft + (panel.grid ? kRowNames : 0));
      layout_.axes.push_back({left, top + above_axes(), starts_[k - first + 1] - scaled(kRight), 0});
      height = std::max(height, axes_height(panel, layout_.axes.back().width()));
    }
    const double bottom = top + above_axes() + height;
    for (std::size_t k = first; k < last; ++k) {
      layout_.axes[k].bottom = bottom;
      layout_.panels.push_back({starts_[k - first], top, starts_[k - first + 1], bottom + scaled(kBottom)});
    }
    return std::max(bottom + scaled(kBottom), arrange_legends(first, last, bottom + scaled(kBottom)));
  }

  /// One legend under the row if its panels share it, else one under each panel.
  double arrange_legends(std::size_t first, std::size_t last, double top) {
    std::vector<std::vector<const Curve*>> all;
    bool shared = true;
    for (std::size_t k = first; k < last; ++k) {
      all.push_back(legend_entries(figure_.panels[k]));
      shared = shared && same_legend(all.front(), all.back());
    }
    if (shared) return add_legend(all.front(), layout_.axes[first].left, layout_.axes[last - 1].right, top);
    double bottom = top;
    for (std::size_t k = first; k < last; ++k) {
      const Box& panel = layout_.panels[k];
      const double inset = scaled(kMargin);
      bottom = std::max(bottom, add_legend(all[k - first], panel.left + inset, panel.right - inset / 2, top));
    }
    return bottom;
  }

  double add_legend(const std::vector<const Curve*>& entries, double left, double right, double top) {
    if (entries.empty()) return top;
    const auto widest = [&](double text) {
      double width = 0;
      for (const Curve* curve : entries) width = std::max(width, text_width(curve->label, text));
      return width + scaled(kSample + 3 * kGap);
    };
    double text = scaled(kLegendText);
    while (text > 1 && widest(text) > right - left) text *= 0.95;
    const int fit = std::clamp(static_cast<int>((right - left) / widest(text)), 1, static_cast<int>(entries.size()));
    const int lines = (static_cast<int>(entries.size()) + fit - 1) / fit;
    const int columns = (static_cast<int>(entries.size()) + lines - 1) / lines;
    const double spare = std::max(0.0, right - left - columns * widest(text));
    const double bottom = top + scaled(kLine) * lines;
    layout_.legends.push_back({.entries = entries,
                               .box = {left + spare / 2, top, right - spare / 2, bottom},
                               .columns = columns,
                               .text = text});
    return bottom;
  }

  const Figure& figure_;
  const FigureOptions& options_;
  Layout layout_;
  std::size_t columns_ = 1;
  std::vector<double> starts_;  // of the columns, and the right edge
};

}  // namespace

double text_width(const std::string& label, double text) {
  constexpr double kLetter = 0.6;  // of the font size; a little more than the mean of DejaVu Sans
  double letters = 0;
  for (const char c : label) {
    const bool inside_of_character = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!inside_of_character && std::string_view("{}^_\\").find(c) == std::string_view::npos) ++letters;
  }
  return kLetter * letters * text;
}

double fitting_text(const std::string& label, double text, double width) {
  return std::min(text, text * width / std::max(1.0, text_width(label, text)));
}

std::vector<const Curve*> legend_entries(const Panel& panel) {
  std::vector<const Curve*> entries;
  for (const Curve& curve : panel.curves) {
    if (!curve.label.empty()) entries.push_back(&curve);
  }
  return entries;
}

Layout layout_of(const Figure& figure, const FigureOptions& options) { return Arranger(figure, options).arrange(); }

}  // namespace attsvm::internal
