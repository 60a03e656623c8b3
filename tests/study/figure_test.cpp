#include <algorithm>
#include <cmath>

#include "study/layout.h"
#include "study/samples.h"
#include "support.h"

namespace attsvm {
namespace {

using test::Scratch;

Figure four_panels() {
  const Curve one{.label = "plain arithmetic, no ridge", .x = {1, 2, 3}, .y = {1, 2, 3}},
      two{.label = "exact", .style = 1, .x = {1, 2, 3}, .y = {3, 2, 1}};
  const Panel both{.title = "both", .x_label = "x", .y_label = "y", .curves = {one, two}},
      alone{.title = "one", .curves = {one}};
  return {.title = "A title of several words",
          .caption = "And a caption.",
          .columns = 2,
          .panels = {both, both, both, alone}};
}

bool apart(const Box& a, const Box& b) {
  return a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
}

TEST(Layout, LegendsStandBelowPanelsAndOnTheCanvas) {
  for (const double width : {0.0, 40.0, 84.0, 180.0, 400.0}) {
    for (const double font_size : {6.0, 9.0, 20.0}) {
      const Figure figure = four_panels();
      const Layout layout = layout_of(figure, {.width = width, .font_size = font_size});
      const double least = 150 * font_size / 9;  // pixels that a panel needs
      if (width > 0) {
        EXPECT_NEAR(layout.width, std::max(width * 96 / 25.4, least), 1);
      }
      ASSERT_EQ(layout.axes.size(), 4U);
      for (const Box& axes : layout.axes) EXPECT_GT(axes.width(), 0);
      for (const Legend& legend : layout.legends) {
        for (const Box& axes : layout.axes) EXPECT_TRUE(apart(legend.box, axes));
        for (const Legend& other : layout.legends) EXPECT_TRUE(&other == &legend || apart(legend.box, other.box));
        EXPECT_GE(legend.box.left, 0);
        EXPECT_LE(legend.box.right, layout.width);
        EXPECT_LE(legend.box.bottom, layout.height);
        double widest = 0;
        for (const Curve* curve : legend.entries) widest = std::max(widest, text_width(curve->label, legend.text));
        EXPECT_LE(legend.columns * widest, legend.box.width());
      }
    }
  }
}

TEST(Layout, PanelsOfARowShareALegend) {
  const Figure figure = four_panels();
  EXPECT_EQ(layout_of(figure, {}).legends.size(), 3U);  // one of the first row, two of the second
}

TEST(Layout, NarrowFiguresHaveOnePanelInARow) {
  const Figure figure = four_panels();
  const Layout wide = layout_of(figure, {}), narrow = layout_of(figure, {.width = 84});
  EXPECT_EQ(wide.axes[0].top, wide.axes[1].top);
  EXPECT_LT(narrow.axes[0].bottom, narrow.axes[1].top);
}

TEST(Layout, TitlesCanBeLeftOut) {
  const Layout layout = layout_of(four_panels(), {.titles = false});
  EXPECT_TRUE(layout.title.empty() && layout.caption.empty());
  EXPECT_EQ(gnuplot_script(four_panels(), {.titles = false}).find("A title"), std::string::npos);
}

TEST(Figure, ErrorBarsStandSideBySide) {
  const Curve one{.mark = Mark::bars, .x = {0, 10}, .y = {1, 1}, .low = {0, 0}, .high = {2, 2}};
  const std::string script = gnuplot_script({.panels = {{.curves = {one, one}}}}, {});
  EXPECT_NE(script.find("\n-0.06 1 0 2\n"), std::string::npos) << script;
  EXPECT_NE(script.find("\n0.06 1 0 2\n"), std::string::npos);
  EXPECT_NE(gnuplot_script({.panels = {{.curves = {one}}}}, {}).find("\n0 1 0 2\n"), std::string::npos);
}

TEST(Figure, ColourAndDashCanSayDifferentThings) {
  Curve curve{.label = "c", .style = 5, .x = {1, 2, 3}, .y = {1, 2, 3}};
  curve.look = {.colour = 2, .dash = 1};
  const std::string script = gnuplot_script({.panels = {{.curves = {curve}}}}, {});
  EXPECT_NE(script.find("dashtype (10,5) linecolor rgb '#009E73' pointtype 8"), std::string::npos) << script;
}

TEST(Figure, EveryFormatIsDrawnTwiceWithTheSameBytes) {
  const Scratch scratch;
  test::write_contents(scratch.file("figure.gp"), gnuplot_script(four_panels(), {.width = 120}));
  for (const std::string format : {"svg", "pdf", "png"}) {
    std::string problem;
    const std::string drawn = draw_figure(scratch.file("figure.gp"), format, problem);
    EXPECT_EQ(problem, "");
    EXPECT_TRUE(drawn.starts_with(format == "svg" ? "<?xml" : format == "pdf" ? "%PDF" : "\x89PNG"));
    EXPECT_EQ(drawn, draw_figure(scratch.file("figure.gp"), format, problem));
    if (format == "pdf") {
      EXPECT_NE(drawn.find("(D:19800101000000"), std::string::npos);
      EXPECT_NE(drawn.find("/MediaBox [ 0 0 340 "), std::string::npos);  // 120 mm
    }
  }
}

TEST(Wilson, IntervalsStayWithinZeroAndOne) {
  EXPECT_EQ(wilson(0, 20).low, 0);
  EXPECT_NEAR(wilson(0, 20).high, 0.1611, 1e-4);
  EXPECT_NEAR(wilson(1, 20).low, 0.8389, 1e-4);
  EXPECT_EQ(wilson(1, 20).high, 1);
  EXPECT_NEAR(wilson(0.5, 100).low, 0.4038, 1e-4);
  EXPECT_EQ(wilson(NAN, 0).low, 0);
  EXPECT_EQ(wilson(NAN, 0).high, 1);
}

}  // namespace
}  // namespace attsvm
