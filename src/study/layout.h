#pragma once

#include <string>
#include <vector>

#include "study/figure.h"

namespace attsvm::internal {

// Where the parts of a figure stand: pixels of 1/96 inch, from the top left corner.

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
  double width() const { return right - left; }
};

/// Labelled curves below the panels that they belong to. Legends never stand inside of a panel, where curves are.
struct Legend {
  std::vector<const Curve*> entries;
  Box box;          ///< as high as its lines
  int columns = 1;  ///< of entries
  double text = 0;  ///< font size; smaller than usual where a label would not fit
};

struct Layout {
  double scale = 1;  ///< of all sizes: font size over the usual one
  double width = 0, height = 0;
  std::vector<std::string> title, caption;  ///< lines
  std::vector<Box> axes;                    ///< of each panel
  std::vector<Box> panels;                  ///< with labels and titles
  std::vector<Legend> legends;
};

// At the usual font size of 9 points.
inline constexpr double kText = 12, kLegendText = 10.5, kPanelText = 12.5, kTitleText = 15, kCaptionText = 11;
inline constexpr double kLine = 17;              ///< from one line of text to the next
inline constexpr double kSample = 30, kGap = 6;  ///< of a legend's entry: its line, and the room beside it
inline constexpr double kMargin = 16;            ///< left of captions

/// About how wide a label is.
double text_width(const std::string& label, double text);

/// The font size at which a label fits into a width; at most `text`.
double fitting_text(const std::string& label, double text, double width);

/// The entries of a panel's legend.
std::vector<const Curve*> legend_entries(const Panel& panel);

Layout layout_of(const Figure& figure, const FigureOptions& options);

}  // namespace attsvm::internal
