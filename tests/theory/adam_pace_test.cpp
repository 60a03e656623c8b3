#include "theory/adam_pace.h"

#include <cmath>

#include "support.h"

namespace attsvm::internal {
namespace {

TEST(AdamPace, SolvesItsEquation) {
  for (const double step : {1e-4, 0.01, 0.3}) {
    for (const double b2 : {0.85, 0.95, 0.999, 0.999999}) {
      for (const double b1 : {0.0, 0.5, 0.9}) {
        const double margin = 2.4;
        const auto [r, fading] = adam_pace(step, b1, b2, margin);
        EXPECT_NEAR(step * margin * (1 - b1) / (1 - b1 * std::exp(r)) * std::sqrt(fading / (1 - b2)) / r, 1, 1e-9)
            << step << " " << b1 << " " << b2;
        EXPECT_LE(r, -0.5 * std::log(b2));
        EXPECT_GT(fading, 0);
      }
    }
  }
}

TEST(AdamPace, IsThatOfSignDescentForSmallSteps) { EXPECT_NEAR(adam_pace(1e-6, 0.9, 0.99, 2).growth / 2e-6, 1, 1e-3); }

TEST(AdamPace, HasNoMeaningWhereStepsGrow) {
  EXPECT_TRUE(std::isnan(adam_pace(0.01, 0.9, 0.81, 1).growth));
  EXPECT_TRUE(std::isnan(adam_pace(0.01, 0.9, 0.5, 1).growth));
  EXPECT_TRUE(std::isnan(adam_pace(0.01, 0.9, 1, 1).growth));
  EXPECT_TRUE(std::isnan(adam_pace(0, 0.9, 0.99, 1).growth));
  EXPECT_TRUE(std::isnan(b2_of_fading(0.01, 0.9, 2.4, 1, 1e9)));
}

TEST(AdamPace, FindsTheForgettingAskedFor) {
  for (const double steps : {1e3, 6e3, 1e6}) {
    const double b2 = b2_of_fading(0.01, 0.9, 2.4, steps, 2.5);
    EXPECT_NEAR(adam_pace(0.01, 0.9, b2, 2.4).fading * steps, 2.5, 1e-3);
  }
}

}  // namespace
}  // namespace attsvm::internal
