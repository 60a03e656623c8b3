#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attsvm/experiments.h"

namespace attsvm::internal {

enum class Mark : std::uint8_t {
  line,    ///< a line, with a marker here and there so that styles differ in black and white too
  points,  ///< markers alone
  band,    ///< a line, and a shaded band from low to high
  bars,    ///< markers joined by a line, with error bars from low to high; those of a panel stand side by side
  boxes,   ///< a box from low to high at every x, as wide as `width`
};

std::string_view name_of(Mark mark);

/// Two variables in one look: house styles whose colour and marker, and whose dash pattern a curve has. Markers of
/// dashed curves are open.
struct Look {
  int colour = 0, dash = 0;
  bool operator==(const Look&) const = default;
};

/// One curve of a panel. Labels may hold the text marks of gnuplot's enhanced mode (W^{mm}); foreign text goes through
/// plain_label() first.
struct Curve {
  std::string label;  ///< in the legend; empty: no entry
  Mark mark = Mark::line;
  int style = 0;  ///< which of the house styles: colour, dash pattern and marker together
  std::vector<double> x, y;
  std::vector<double> low{}, high{};  ///< band, bars, boxes
  double width = 0.8;                 ///< boxes
  bool thin = false;                  ///< lines in the background
  std::optional<Look> look{};         ///< instead of the style, in gnuplot's figure
};

/// Numbers from 0 to 1 in rows and columns with names, drawn as coloured cells that show them.
struct Grid {
  std::vector<std::string> rows, columns;
  std::vector<std::vector<double>> values, errors;  ///< [row][column]; NaN: an empty cell
  std::vector<int> outlined;                        ///< the column that a row's frame is around; −1: none
};

struct Panel {
  std::string title, x_label, y_label;
  bool log_x = false, log_y = false;
  std::optional<std::pair<double, double>> x_range{}, y_range{};
  bool square = false;  ///< the same unit on both axes; needs both ranges
  std::vector<Curve> curves{};
  std::optional<Grid> grid{};  ///< instead of curves
};

struct Figure {
  std::string title, caption;
  int columns = 2;
  std::vector<Panel> panels;
};

/// Escapes untrusted text so that a label shows it literally.
std::string plain_label(const std::string& text);

/// The figure as a gnuplot script that writes to standard output, in the format that its variable `format` names: svg,
/// pdf or png. Same figure, same text.
std::string gnuplot_script(const Figure& figure, const FigureOptions& options);

/// Runs gnuplot on a script file. Returns the file's contents; `problem` says in one line why there are none.
std::string draw_figure(const std::string& script_file, const std::string& format, std::string& problem);

}  // namespace attsvm::internal
