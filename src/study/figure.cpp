#include "study/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "study/layout.h"

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

/// How a curve is drawn.
struct Pen {
  std::string colour, dash;
  int marker = 0, fill = 0;

  std::string line(double width) const {
    return fmt::format("linewidth {} dashtype {} linecolor rgb '{}'", width, dash, colour);
  }
};

const HouseStyle& house_style(int style) { return kStyles[static_cast<std::size_t>(style) % kStyles.size()]; }

Pen pen_of(const Curve& curve) {
  const HouseStyle& own = house_style(curve.look ? curve.look->colour : curve.style);
  if (!curve.look) return {std::string(own.colour), std::string(own.dash), own.marker, own.fill};
  // Of the markers that the first house styles have, each open one comes before the filled one.
  const bool open = curve.look->dash > 0;
  return {std::string(own.colour), std::string(house_style(curve.look->dash).dash), own.marker - (open ? 1 : 0),
          own.fill};
}

constexpr double kLineWidth = 1.8, kThinLine = 0.8;
constexpr int kAxisLabel = 10'000;  // gnuplot's number of the label beside an axis, above those it counts itself

bool has_markers(const Curve& curve) {
  return curve.mark == Mark::bars || curve.mark == Mark::band || (!curve.thin && curve.x.size() >= 3);
}

class Script {
 public:
  Script(const Figure& figure, const FigureOptions& options)
      : figure_(figure), options_(options), layout_(layout_of(figure, options)) {}

  std::string text() {
    write_terminals();
    for (std::size_t k = 0; k < figure_.panels.size(); ++k) write_data(k);
    line("set multiplot");
    line("set border 3 linewidth 1 linecolor rgb '#444444'");
    line("set tics nomirror out scale 0.6 textcolor rgb '#222222'");
    line("set grid linetype 1 linewidth 0.5 linecolor rgb '#DDDDDD'");
    line("set key off");
    write_words();
    for (const Legend& legend : layout_.legends) write_legend(legend);
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

  double scaled(double size) const { return size * layout_.scale; }

  /// A position in gnuplot's words, from pixels.
  std::string at(double x, double y) const {
    return fmt::format("screen {:.6f},{:.6f}", x / layout_.width, 1 - y / layout_.height);
  }

  /// The same sizes in every format: inches of 96 pixels, and 300 dots per inch of PNG. The cairo terminals draw a font
  /// of n points n · 96/72 units high; a unit is a dot of PNG, and a point of PDF, whose lines are half a unit wide.
  void write_terminals() {
    constexpr double kPixels = 96, kDots = 300, kPoints = 72;
    const double w = layout_.width, h = layout_.height, dots = kDots / kPixels;
    const std::string end = "background rgb 'white'";
    line("# gnuplot -e \"format='pdf'\" figure.gp > figure.pdf; likewise for png and svg");
    line("if (!exists('format')) format = 'svg'");
    line(
        "if (format eq 'svg') set terminal svg size {:.0f},{:.0f} enhanced font 'DejaVu Sans,Helvetica,Arial,sans-serif"
        ",{:.4g}' {}",
        w, h, scaled(kText), end);
    line(
        "if (format eq 'pdf') set terminal pdfcairo size {:.4f}in,{:.4f}in enhanced font 'DejaVu Sans,{:.4g}' "
        "fontscale {} linewidth {} {}",
        w / kPixels, h / kPixels, scaled(kText), kPoints / kPixels * kPoints / kPixels, 2 * kPoints / kPixels, end);
    line(
        "if (format eq 'png') set terminal pngcairo size {:.0f},{:.0f} enhanced font 'DejaVu Sans,{:.4g}' fontscale "
        "{} linewidth {} pointscale {} {}",
        w * dots, h * dots, scaled(kText), kPoints / kPixels * dots, dots, dots, end);
    line("set encoding utf8");
  }

  /// Title and caption. gnuplot draws labels with the first panel, which then drops them.
  void write_words() {
    for (std::size_t k = 0; k < layout_.title.size(); ++k) {
      line("set label {} center at {} font ',{:.4g}'", quoted(layout_.title[k]),
           at(layout_.width / 2, scaled(24 + 1.2 * kLine * static_cast<double>(k))), scaled(kTitleText));
    }
    const auto lines = static_cast<double>(layout_.caption.size());
    for (std::size_t k = 0; k < layout_.caption.size(); ++k) {
      const double y = layout_.height - scaled(kLine) * (lines - static_cast<double>(k) - 0.4);
      line("set label {} left noenhanced at {} font ',{:.4g}' textcolor rgb '#333333'", quoted(layout_.caption[k]),
           at(scaled(kMargin), y), scaled(kCaptionText));
    }
  }

  void write_legend(const Legend& legend) {
    const auto count = static_cast<int>(legend.entries.size());
    const int lines = (count + legend.columns - 1) / legend.columns;
    for (int k = 0; k < count; ++k) {
      const Curve& curve = *legend.entries[static_cast<std::size_t>(k)];
      const Pen pen = pen_of(curve);
      const double x = legend.box.left + k / lines * legend.box.width() / legend.columns,
                   y = legend.box.top + scaled(kLine) * (k % lines + 0.5), end = x + scaled(kSample),
                   half = scaled(kLine) * 0.3;
      const std::string rectangle =
          fmt::format("set object rectangle from {} to {}", at(x, y + half), at(end, y - half));
      if (curve.mark == Mark::boxes) {
        line("{0} fillstyle pattern {1} border linecolor rgb '{2}' fillcolor rgb '{2}' linewidth 0.8", rectangle,
             pen.fill, pen.colour);
      } else if (curve.mark != Mark::points) {
        if (curve.mark == Mark::band)
          line("{} fillstyle transparent solid 0.15 noborder fillcolor rgb '{}'", rectangle, pen.colour);
        line("set arrow from {} to {} nohead {}", at(x, y), at(end, y), pen.line(curve.thin ? kThinLine : kLineWidth));
      }
      if (curve.mark == Mark::points || (curve.mark != Mark::boxes && has_markers(curve)))
        line("set label '' at {} point pointtype {} pointsize 0.7 linecolor rgb '{}'", at((x + end) / 2, y), pen.marker,
             pen.colour);
      line("set label {} left at {} font ',{:.4g}'", quoted(curve.label), at(end + scaled(kGap), y), legend.text);
    }
  }

  /// Curves with error bars stand side by side, so that bars at the same x can be told apart, but nearer to their own x
  /// than to the next.
  static std::function<double(double)> dodge(const Panel& panel, const Curve& curve) {
    constexpr double kApart = 0.012, kSpread = 0.6;  // of the axis; of the way to the next x, all curves together
    const auto scale = [&](double x) { return panel.log_x ? std::log(x) : x; };
    std::set<double> places;
    double place = 0, count = 0;
    for (const Curve& one : panel.curves) {
      for (const double x : one.x) {
        if (std::isfinite(scale(x))) places.insert(scale(x));
      }
      if (one.mark != Mark::bars) continue;
      if (&one == &curve) place = count;
      ++count;
    }
    if (curve.mark != Mark::bars || count < 2 || places.size() < 2) return [](double x) { return x; };
    const double span =
        panel.x_range ? scale(panel.x_range->second) - scale(panel.x_range->first) : *places.rbegin() - *places.begin();
    double next = span;
    for (auto at = places.begin(); std::next(at) != places.end(); ++at) next = std::min(next, *std::next(at) - *at);
    const double shift = std::min(kApart * span, kSpread * next / count) * (place - (count - 1) / 2);
    if (panel.log_x) return [factor = std::exp(shift)](double x) { return x * factor; };
    return [shift](double x) { return x + shift; };
  }

  /// The numbers of every curve, named $c<panel>_<curve>. Numbers that are not finite, or not positive on a log axis,
  /// become gaps.
  void write_data(std::size_t k) {
    const Panel& panel = figure_.panels[k];
    if (panel.grid) write_grid_data(k, *panel.grid);
    for (std::size_t j = 0; j < panel.curves.size(); ++j) {
      const Curve& curve = panel.curves[j];
      const auto moved = dodge(panel, curve);
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
        line("{:.8g} {:.8g} {:.8g} {:.8g}", moved(x), y, low, high);
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
          const double error = grid.errors[r][c];
          line("{} {} {} \"{:.3f}{}\"", c, r, shade(value), value,
               std::isfinite(error) ? fmt::format(" {{/*0.8 ±{:.3f}}}", error) : "");
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
    line("set xrange [-0.5:{}]", static_cast<double>(grid.columns.size()) - 0.5);
    line("set yrange [{}:-0.5]", static_cast<double>(grid.rows.size()) - 0.5);
    const std::string box = "using 1:2:($1-0.47):($1+0.47):($2-0.44):($2+0.44)";
    line("plot $g{0} {1}:3 with boxxyerror fillstyle solid 1 noborder linecolor rgb variable, \\", k, box);
    line("  $f{0} {1} with boxxyerror linecolor rgb '#D55E00' linewidth 2.2 fillstyle empty border, \\", k, box);
    line("  $b{0} using 1:2:4 with labels font ',{1:.4g}' textcolor rgb '#222222', \\", k, scaled(kLegendText));
    line("  $w{0} using 1:2:4 with labels font ',{1:.4g}' textcolor rgb '#FFFFFF'", k, scaled(kLegendText));
    line("set xtics autofreq scale 0.6");
    line("set ytics autofreq scale 0.6");
    line("set grid");
    line("set border 3");
  }

  /// "(b) Norm of p"; a panel that stands alone has no letter, and without titles nothing to say.
  std::string title_of(std::size_t k) const {
    const Panel& panel = figure_.panels[k];
    if (figure_.panels.size() > 1) return fmt::format("({}) {}", static_cast<char>('a' + k), panel.title);
    return options_.titles ? panel.title : "";
  }

  void write_panel(std::size_t k) {
    const Panel& panel = figure_.panels[k];
    const Box& axes = layout_.axes[k];
    line("set lmargin at screen {:.6f}", axes.left / layout_.width);
    line("set rmargin at screen {:.6f}", axes.right / layout_.width);
    line("set tmargin at screen {:.6f}", 1 - axes.top / layout_.height);
    line("set bmargin at screen {:.6f}", 1 - axes.bottom / layout_.height);
    const std::string title = title_of(k);
    line("set title {} offset 0,-0.4 font ',{:.4g}'", quoted(title),
         fitting_text(title, scaled(kPanelText), layout_.panels[k].width()));
    line("set xlabel {} offset 0,0.4", quoted(panel.x_label));
    if (panel.grid) {
      line("unset logscale");
      line("set format '%g'");
      line("set size noratio");
      write_grid(k, *panel.grid);
    } else {
      // Not gnuplot's own label, which it puts as near to the axis as it believes the numbers there to be wide.
      line("set label {} {} center rotate at {} font ',{:.4g}'", kAxisLabel, quoted(panel.y_label),
           at(layout_.panels[k].left + scaled(kText), (axes.top + axes.bottom) / 2),
           fitting_text(panel.y_label, scaled(kText), axes.bottom - axes.top + scaled(kLine)));
      // Without any point gnuplot finds no range and fails to draw the whole figure.
      const std::pair<double, double> any{1, 10};
      write_axis('x', panel.log_x, has_points(panel) || panel.x_range ? panel.x_range : any);
      write_axis('y', panel.log_y, has_points(panel) || panel.y_range ? panel.y_range : any);
      line("set size {}", panel.square ? "ratio -1" : "noratio");
      if (panel.curves.empty()) return;
      text_ += "plot ";
      std::string joint;
      for (std::size_t j = 0; j < panel.curves.size(); ++j) {
        text_ += joint;
        write_curve(fmt::format("$c{}_{}", k, j), panel.curves[j]);
        joint = ", \\\n  ";
      }
      text_ += '\n';
    }
    line("unset label {}", kAxisLabel);
    if (std::exchange(words_drawn_, true)) return;
    for (const char* what : {"label", "arrow", "object"}) line("unset {}", what);
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
    const Pen pen = pen_of(curve);
    const std::string look = pen.line(curve.thin ? kThinLine : kLineWidth);
    const auto add = [&](const std::string& words) { text_ += data + " " + words; };
    const auto add_line = [&](std::size_t markers) {  // how many markers, about; 0: one per point
      if (!has_markers(curve)) return add(fmt::format("using 1:2 with lines {}", look));
      const std::size_t apart = markers == 0 ? 1 : std::max<std::size_t>(1, curve.x.size() / markers);
      add(fmt::format("using 1:2 with linespoints {} pointtype {} pointsize 0.6 pointinterval {}", look, pen.marker,
                      apart));
    };
    switch (curve.mark) {
      case Mark::line:
        add_line(6);
        break;
      case Mark::points:
        add(fmt::format("using 1:2 with points pointtype {} pointsize {} linecolor rgb '{}'", pen.marker,
                        curve.x.size() > 100 ? 0.35 : 0.7, pen.colour));
        break;
      case Mark::band:
        add(fmt::format("using 1:3:4 with filledcurves fillstyle transparent solid 0.15 noborder linecolor rgb '{}'",
                        pen.colour));
        text_ += ", \\\n  ";
        add_line(8);
        break;
      case Mark::bars:
        add(fmt::format("using 1:2:3:4 with yerrorbars linewidth 1 linecolor rgb '{}' pointtype -1", pen.colour));
        text_ += ", \\\n  ";
        add_line(0);
        break;
      case Mark::boxes:
        add(
            fmt::format("using 1:2:($1-{0:.4g}):($1+{0:.4g}):3:4 with boxxyerror fillstyle pattern {1} border "
                        "linewidth 0.8 linecolor rgb '{2}'",
                        curve.width / 2, pen.fill, pen.colour));
        break;
    }
  }

  const Figure& figure_;
  const FigureOptions& options_;
  const Layout layout_;
  std::string text_;
  bool words_drawn_ = false;
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

std::string gnuplot_script(const Figure& figure, const FigureOptions& options) {
  return Script(figure, options).text();
}

}  // namespace attsvm::internal
