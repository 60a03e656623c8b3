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

TEST(StepAdvice, IsGivenWhereAveragesForgetMoreSlowlyThanGradientsFall) {
  const double margin = 2.4;
  const auto advice = [&](TrainSettings settings, Index steps) { return step_advice(words_of(settings), steps, margin); };
  TrainSettings signum{.optimizer = Optimizer::signum, .step = 0.1};
  EXPECT_NE(advice(signum, 3000).find("steps below 0.01"), std::string::npos) << advice(signum, 3000);
  signum.step = 0.02;
  EXPECT_EQ(advice(signum, 3000), "");
  signum.momentum = 0.99;
  EXPECT_NE(advice(signum, 3000), "") << "a longer memory needs smaller steps";
  TrainSettings lion{.optimizer = Optimizer::lion, .step = 0.01};
  EXPECT_NE(advice(lion, 3000), "") << "0.99 is the memory that counts";
  lion.betas = {{0.5, 0.6}};
  EXPECT_EQ(advice(lion, 3000), "");
  EXPECT_EQ(advice({.step = 10}, 3000), "") << "without averages there is nothing to forget";
  EXPECT_EQ(advice({.param = Parametrization::KQ, .momentum = 0.9, .step = 10}, 3000), "");
}

TEST(StepAdvice, TellsWhetherAdamHasForgottenItsStart) {
  TrainSettings adam{.optimizer = Optimizer::adam, .betas = {{0.9, 0.999}}, .step = 0.01, .epsilon = 0};
  const auto advice = [&](Index steps) { return step_advice(words_of(adam), steps, 2.4); };
  EXPECT_NE(advice(6000).find("second moments"), std::string::npos);
  EXPECT_EQ(advice(10'000'000), "");
  adam.betas = {{0.9, 0.95}};
  EXPECT_EQ(advice(6000), "");
  adam.epsilon = 1e-8;
  EXPECT_NE(advice(6000).find("at about 18"), std::string::npos) << advice(6000);
  EXPECT_EQ(advice(6000).find("second moments"), std::string::npos);
}

TEST(AdamPace, FindsTheForgettingAskedFor) {
  for (const double steps : {1e3, 6e3, 1e6}) {
    const double b2 = b2_of_fading(0.01, 0.9, 2.4, steps, 2.5);
    EXPECT_NEAR(adam_pace(0.01, 0.9, b2, 2.4).fading * steps, 2.5, 1e-3);
  }
}

}  // namespace
}  // namespace attsvm::internal
