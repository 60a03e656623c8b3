#include "study/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <string_view>

namespace attsvm::internal {
namespace {

/// Colours that colour-blind readers tell apart (Okabe and Ito), each with a dash pattern, a marker and a fill of its
/// own, so that they differ in black and white too.
struct HouseStyle {
  std::string_view colour, dash;
  int marker, fill;
};
constexpr std::array kStyles{
    HouseStyle{"#0072B2", "solid", 7, 3},  HouseStyle{"#D55E00", "(10,5)", 5, 2},
    HouseStyle{"#009E73", "(3,4)", 9, 1},  HouseStyle{"#CC79A7", "(12,4,3,4)", 13, 4},
    HouseStyle{"#E69F00", "(6,3)", 11, 5}, HouseStyle{"#56B4E9", "(16,4)", 6, 6},
    HouseStyle{"#000000", "(2,2)", 4, 0},  HouseStyle{"#888888", "(8,3,2,3,2,3)", 8, 7},
};

// Sizes in pixels of the SVG.
constexpr int kPanelWidth = 430, kPanelHeight = 310, kSquareHeight = 400;
constexpr int kLegend = 165;                                // beside panels whose legend is outside
constexpr int kRowNames = 95, kWider = 150, kGridRow = 27;  // of grids: further room for names, width, height of a row
constexpr int kLeft = 70, kRight = 22, kTop = 34, kBottom = 56, kTitle = 40, kLineHeight = 17;

/// A gnuplot string; between single quotes only the quote itself is special.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

/// From white at 0 to the first house colour at 1.
std::string shade(double value) {
  constexpr std::array kFull{0x00, 0x72, 0xB2};
  const double share = std::clamp(value, 0.0, 1.0);
  std::string colour = "0x";
  for (const int full : kFull)
    colour += fmt::format("{:02X}", static_cast<int>(std::lround(255 + share * (full - 255))));
  return colour;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
    at = end + 1;
  }
  return lines;
}

class Script {
 public:
  explicit Script(const Figure& figure) : figure_(figure) {}

  std::string text() {
    const auto count = static_cast<int>(figure_.panels.size());
    columns_ = std::clamp(figure_.columns, 1, std::max(1, count));
    const int rows = std::max(1, (count + columns_ - 1) / columns_);
    for (int r = 0; r < rows; ++r) row_heights_.push_back(row_height(r));
    for (int c = 0; c <= columns_; ++c)
      column_starts_.push_back(c == 0 ? 0 : column_starts_.back() + column_width(c - 1));
    width_ = column_starts_.back();
    const std::vector<std::string> caption = wrapped(figure_.caption, static_cast<std::size_t>(width_) * 10 / 64);
    height_ = kTitle + 14 + static_cast<int>(caption.size()) * kLineHeight;
    for (const int height : row_heights_) height_ += height;

    line("set terminal svg size {},{} enhanced font 'DejaVu Sans,Helvetica,Arial,sans-serif,12' background rgb 'white'",
         width_, height_);
    line("set encoding utf8");
    for (std::size_t k = 0; k < figure_.panels.size(); ++k) write_data(k);
    line("set multiplot");
    line("set border 3 linewidth 1 linecolor rgb '#444444'");
    line("set tics nomirror out scale 0.6 textcolor rgb '#222222'");
    line("set grid linetype 1 linewidth 0.5 linecolor rgb '#DDDDDD'");
    line("set key samplen 3 spacing 1.05 font ',10.5' opaque fillcolor rgb '#FFFFFF' noautotitle");
    line("set label 1 {} at screen 0.5,{:.6f} center font ',15'", quoted(figure_.title), from_bottom(24));
    for (std::size_t k = 0; k < caption.size(); ++k) {
      const int y = height_ - 12 - static_cast<int>(caption.size() - 1 - k) * kLineHeight;
      line("set label {} {} at screen {:.6f},{:.6f} left noenhanced font ',11' textcolor rgb '#333333'", k + 2,
           quoted(caption[k]), 16.0 / width_, from_bottom(y));
    }
    for (std::size_t k = 0; k < figure_.panels.size(); ++k) write_panel(k);
    line("unset multiplot");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  int row_height(int row) const {
    int height = kPanelHeight;
    for (int c = 0; c < columns_; ++c) {
      const auto k = static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(c);
      if (k >= figure_.panels.size()) continue;
      const Panel& panel = figure_.panels[k];
      if (panel.square) height = std::max(height, kSquareHeight);
      if (panel.grid) height = std::max(height, static_cast<int>(panel.grid->rows.size()) * kGridRow + kTop + kBottom);
    }
    return height;
  }

  int column_width(int column) const {
    for (auto k = static_cast<std::size_t>(column); k < figure_.panels.size();
         k += static_cast<std::size_t>(columns_)) {
      if (figure_.panels[k].key == kOutside) return kPanelWidth + kLegend;
    }
    return kPanelWidth + (has_grid(column) ? kWider : 0);
  }

  bool has_grid(int column) const {
    for (auto k = static_cast<std::size_t>(column); k < figure_.panels.size();
         k += static_cast<std::size_t>(columns_)) {
      if (figure_.panels[k].grid) return true;
    }
    return false;
  }

  double from_bottom(double pixels_from_top) const { return 1 - pixels_from_top / height_; }

  /// The numbers of every curve, named $c<panel>_<curve>. Numbers that are not finite, or not positive on a log axis,
  /// become gaps.
  void write_data(std::size_t k) {
    const Panel& panel = figure_.panels[k];
    if (panel.grid) write_grid_data(k, *panel.grid);
    for (std::size_t j = 0; j < panel.curves.size(); ++j) {
      const Curve& curve = panel.curves[j];
      line("$c{}_{} << EOD", k, j);
      bool some = false;
      for (std::size_t i = 0; i < curve.x.size(); ++i) {
        const double x = curve.x[i], y = curve.y[i];
        if (!shown(panel, curve, i)) {
          line("");
          continue;
        }
        const bool spread = !curve.low.empty();
        double low = spread ? curve.low[i] : y, high = spread ? curve.high[i] : y;
        if (panel.log_y && !(low > 0)) low = y / 1e3;  // a spread to below zero ends at the panel's bottom
        line("{:.8g} {:.8g} {:.8g} {:.8g}", x, y, low, high);
        some = true;
      }
      if (!some) line("NaN NaN NaN NaN");
      line("EOD");
    }
  }

  /// The cells as $g<panel>: column, row, colour of the cell, and the number as text. Numbers on dark cells are white,
  /// and therefore in data of their own, $w<panel>; $f<panel> has the cells with a frame.
  void write_grid_data(std::size_t k, const Grid& grid) {
    constexpr double kDark = 0.6;
    const auto write = [&](char name, const std::function<bool(std::size_t, std::size_t)>& wanted) {
      line("${}{} << EOD", name, k);
      for (std::size_t r = 0; r < grid.rows.size(); ++r) {
        for (std::size_t c = 0; c < grid.columns.size(); ++c) {
          const double value = grid.values[r][c];
          if (!std::isfinite(value) || !wanted(r, c)) continue;
          line("{} {} {} \"{:.3f} {{/*0.8 ±{:.3f}}}\"", c, r, shade(value), value, grid.errors[r][c]);
        }
      }
      line("-9 -9 0xFFFFFF \"\"");  // outside of the panel: gnuplot refuses data without a point
      line("EOD");
    };
    write('g', [&](std::size_t, std::size_t) { return true; });
    write('b', [&](std::size_t r, std::size_t c) { return grid.values[r][c] <= kDark; });
    write('w', [&](std::size_t r, std::size_t c) { return grid.values[r][c] > kDark; });
    write('f', [&](std::size_t r, std::size_t c) { return grid.outlined[r] == static_cast<int>(c); });
  }

  void write_grid(std::size_t k, const Grid& grid) {
    const auto ticks = [](const std::vector<std::string>& names) {
      std::string text;
      for (std::size_t i = 0; i < names.size(); ++i)
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", quoted(plain_label(names[i])), i);
      return text;
    };
    line("set xtics scale 0 ({})", ticks(grid.columns));
    line("set ytics scale 0 ({})", ticks(grid.rows));
    line("unset grid");
    line("unset border");
    line("set key off");
    line("set xrange [-0.5:{}]", static_cast<double>(grid.columns.size()) - 0.5);
    line("set yrange [{}:-0.5]", static_cast<double>(grid.rows.size()) - 0.5);
    const std::string box = "using 1:2:($1-0.47):($1+0.47):($2-0.44):($2+0.44)";
    line("plot $g{0} {1}:3 with boxxyerror fillstyle solid 1 noborder linecolor rgb variable, \\", k, box);
    line("  $f{0} {1} with boxxyerror linecolor rgb '#D55E00' linewidth 2.2 fillstyle empty border, \\", k, box);
    line("  $b{0} using 1:2:4 with labels font ',10.5' textcolor rgb '#222222', \\", k);
    line("  $w{0} using 1:2:4 with labels font ',10.5' textcolor rgb '#FFFFFF'", k);
    line("set xtics autofreq scale 0.6");
    line("set ytics autofreq scale 0.6");
    line("set grid");
    line("set border 3");
  }

  void write_panel(std::size_t k) {
    const Panel& panel = figure_.panels[k];
    const int row = static_cast<int>(k) / columns_, column = static_cast<int>(k) % columns_;
    int top = kTitle;
    for (int r = 0; r < row; ++r) top += row_heights_[static_cast<std::size_t>(r)];
    const int bottom = top + row_heights_[static_cast<std::size_t>(row)];
    const int left = column_starts_[static_cast<std::size_t>(column)], names = panel.grid ? kRowNames : 0,
              right = left + kPanelWidth + (has_grid(column) ? kWider : 0) - kRight;
    line("set lmargin at screen {:.6f}", static_cast<double>(left + kLeft + names) / width_);
    line("set rmargin at screen {:.6f}", static_cast<double>(right) / width_);
    line("set tmargin at screen {:.6f}", from_bottom(top + kTop));
    line("set bmargin at screen {:.6f}", from_bottom(bottom - kBottom));
    line("set title {} offset 0,-0.4 font ',12.5'",
         quoted(figure_.panels.size() > 1 ? fmt::format("({}) {}", static_cast<char>('a' + k), panel.title)
                                          : panel.title));
    if (panel.grid) {
      line("set xlabel {} offset 0,0.4", quoted(panel.x_label));
      line("unset ylabel");
      line("unset logscale");
      line("set format '%g'");
      line("set size noratio");
      write_grid(k, *panel.grid);
      if (k == 0) line("unset label");
      return;
    }
    line("set xlabel {} offset 0,0.4", quoted(panel.x_label));
    line("set ylabel {} offset 1,0", quoted(panel.y_label));
    // Without any point gnuplot finds no range and fails to draw the whole figure.
    const std::pair<double, double> any{1, 10};
    write_axis('x', panel.log_x, has_points(panel) || panel.x_range ? panel.x_range : any);
    write_axis('y', panel.log_y, has_points(panel) || panel.y_range ? panel.y_range : any);
    line("set size {}", panel.square ? "ratio -1" : "noratio");
    if (panel.key.empty()) {
      line("set key off");
    } else if (panel.key == kOutside) {
      line("set key on at screen {:.6f},{:.6f} left top Left reverse", static_cast<double>(right + 4) / width_,
           from_bottom(top + kTop));
    } else {
      line("set key on inside {} noreverse Right", panel.key);
    }
    if (panel.curves.empty()) return;
    text_ += "plot ";
    std::string joint;
    for (std::size_t j = 0; j < panel.curves.size(); ++j) {
      text_ += joint;
      write_curve(fmt::format("$c{}_{}", k, j), panel.curves[j]);
      joint = ", \\\n  ";
    }
    text_ += '\n';
    if (k == 0) line("unset label");
  }

  static bool shown(const Panel& panel, const Curve& curve, std::size_t i) {
    const double x = curve.x[i], y = curve.y[i];
    return std::isfinite(x) && std::isfinite(y) && (!panel.log_x || x > 0) && (!panel.log_y || y > 0);
  }

  static bool has_points(const Panel& panel) {
    for (const Curve& curve : panel.curves) {
      for (std::size_t i = 0; i < curve.x.size(); ++i) {
        if (shown(panel, curve, i)) return true;
      }
    }
    return false;
  }

  void write_axis(char axis, bool log, const std::optional<std::pair<double, double>>& range) {
    line("{} logscale {}", log ? "set" : "unset", axis);
    if (log) {
      line("set format {} '10^{{%T}}'", axis);
    } else {
      line("set format {} '%g'", axis);
    }
    if (range) {
      line("set {}range [{:.8g}:{:.8g}]", axis, range->first, range->second);
    } else {
      line("set {}range [*:*]", axis);
    }
  }

  void write_curve(const std::string& data, const Curve& curve) {
    const HouseStyle& style = kStyles[static_cast<std::size_t>(curve.style) % kStyles.size()];
    const std::string title = curve.label.empty() ? "notitle" : "title " + quoted(curve.label);
    const double width = curve.thin ? 0.8 : 1.8;
    const std::string look =
        fmt::format("linewidth {} dashtype {} linecolor rgb '{}'", width, style.dash, style.colour);
    const auto add = [&](const std::string& words) { text_ += data + " " + words; };
    switch (curve.mark) {
      case Mark::line: {
        const auto apart = std::max<std::size_t>(1, curve.x.size() / 6);
        if (curve.thin || curve.x.size() < 3) {
          add(fmt::format("using 1:2 with lines {} {}", look, title));
        } else {
          add(fmt::format("using 1:2 with linespoints {} pointtype {} pointsize 0.6 pointinterval {} {}", look,
                          style.marker, apart, title));
        }
        break;
      }
      case Mark::points:
        add(fmt::format("using 1:2 with points pointtype {} pointsize {} linecolor rgb '{}' {}", style.marker,
                        curve.x.size() > 100 ? 0.35 : 0.7, style.colour, title));
        break;
      case Mark::band: {
        add(fmt::format(
            "using 1:3:4 with filledcurves fillstyle transparent solid 0.15 noborder linecolor rgb '{}' notitle",
            style.colour));
        text_ += ", \\\n  ";
        const auto apart = std::max<std::size_t>(1, curve.x.size() / 8);
        add(fmt::format("using 1:2 with linespoints {} pointtype {} pointsize 0.6 pointinterval {} {}", look,
                        style.marker, apart, title));
        break;
      }
      case Mark::bars:
        add(fmt::format("using 1:2:3:4 with yerrorbars linewidth 1 linecolor rgb '{}' pointtype -1 notitle",
                        style.colour));
        text_ += ", \\\n  ";
        add(fmt::format("using 1:2 with linespoints {} pointtype {} pointsize 0.7 {}", look, style.marker, title));
        break;
      case Mark::boxes:
        add(fmt::format(
            "using 1:2:($1-{0:.4g}):($1+{0:.4g}):3:4 with boxxyerror fillstyle pattern {1} border linewidth "
            "0.8 linecolor rgb '{2}' {3}",
            curve.width / 2, style.fill, style.colour, title));
        break;
    }
  }

  const Figure& figure_;
  std::string text_;
  int columns_ = 1, width_ = 0, height_ = 0;
  std::vector<int> row_heights_, column_starts_;
};

}  // namespace

std::string_view name_of(Mark mark) {
  switch (mark) {
    case Mark::line:
      return "line";
    case Mark::points:
      return "points";
    case Mark::band:
      return "band";
    case Mark::bars:
      return "bars";
    case Mark::boxes:
      return "boxes";
  }
  return "";
}

std::string plain_label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\{}^_@&~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string gnuplot_script(const Figure& figure) { return Script(figure).text(); }

}  // namespace attsvm::internal
