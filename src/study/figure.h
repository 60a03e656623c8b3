#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attsvm::internal {

enum class Mark : std::uint8_t {
  line,    ///< a line, with a marker here and there so that styles differ in black and white too
  points,  ///< markers alone
  band,    ///< a line, and a shaded band from low to high
  bars,    ///< markers joined by a line, with error bars from low to high
  boxes,   ///< a box from low to high at every x, as wide as `width`
};

std::string_view name_of(Mark mark);

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
};

/// The legend stands to the right of the panel.
inline constexpr const char* kOutside = "outside";

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
  bool square = false;        ///< the same unit on both axes
  std::string key = "right";  ///< position of the legend, in gnuplot's terms; empty: no legend
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

/// The figure as a gnuplot script that writes SVG to standard output. Same figure, same text.
std::string gnuplot_script(const Figure& figure);

/// Runs gnuplot on a script file. Returns the SVG; `problem` says in one line why there is none.
std::string draw_svg(const std::string& script_file, std::string& problem);

}  // namespace attsvm::internal
