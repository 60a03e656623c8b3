// Advice on steps that are too large for what an optimizer remembers.
#include "theory/step_advice.h"

#include <cmath>

#include "support.h"
#include "train/settings.h"

namespace attsvm::internal {
namespace {

constexpr double kMargin = 2.4;

/// Advice on a run of so many steps, whose smallest gap grows by `growth` per step.
std::string advice(const TrainSettings& settings, Index steps, double growth, double rho = 0.5) {
  const std::vector<Index> at{steps / 2, steps};
  const std::vector<double> gaps{growth * static_cast<double>(steps / 2), growth * static_cast<double>(steps)};
  const std::string words = words_of(settings);
  return step_advice({.settings = words, .steps = at, .gaps = gaps, .margin = kMargin, .rho = rho});
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

TEST(StepAdvice, IsGivenWhereGapsGrowFasterThanAveragesForget) {
  const double largest = -std::log(0.9) / kMargin;
  TrainSettings signum{.optimizer = Optimizer::signum, .step = 1.1 * largest};
  EXPECT_TRUE(says(advice(signum, 3000, 0.1), "steps of about 0.031")) << advice(signum, 3000, 0.1);
  EXPECT_EQ(advice(signum, 3000, 0.1, 0.96), "") << "close enough";
  signum.step = 0.9 * largest;
  EXPECT_EQ(advice(signum, 3000, 0.1), "");
  signum.step = 1;
  signum.schedule = Schedule::cosine;
  EXPECT_EQ(advice(signum, 3000, 0.1), "") << "the step at the end is another one";
  EXPECT_EQ(advice({.step = 10}, 3000, 10), "") << "without averages there is nothing to forget";
}

TEST(StepAdvice, LooksAtTheBetaThatRemembers) {
  TrainSettings lion{.optimizer = Optimizer::lion, .step = 0.01};
  EXPECT_NE(advice(lion, 3000, 0.02), "") << "0.99 forgets at 0.01 per step";
  lion.betas = {{0.95, 0.5}};
  EXPECT_EQ(advice(lion, 3000, 0.02), "") << "the first beta only mixes";
}

TEST(StepAdvice, KnowsProductsAndNewtonSchulz) {
  const auto KQ = Parametrization::KQ;
  EXPECT_TRUE(says(advice({.param = KQ, .momentum = 0.9}, 3000, 1), "smaller"));
  EXPECT_EQ(advice({.param = KQ, .momentum = 0.9}, 3000, 0.1), "") << "measured: slower than it forgets";
  EXPECT_TRUE(says(advice({.param = KQ, .optimizer = Optimizer::steepest, .norm = Norm::spectral()}, 3000, 1), "K Q'"));
  EXPECT_EQ(advice({.param = KQ}, 3000, 1), "");
  EXPECT_TRUE(says(advice({.optimizer = Optimizer::muon, .newton_schulz = 5}, 3000, 1), "Newton-Schulz"));
}

TEST(StepAdvice, MeasuresHeadsThatShareANorm) {
  const TrainSettings own{.heads = 2, .momentum = 0.9, .step = 1};
  EXPECT_TRUE(says(advice(own, 3000, 0.01), "would grow by 2.4"));
  TrainSettings shared = own;
  shared.shared_norm = true;
  EXPECT_EQ(advice(shared, 3000, 0.01), "") << "the head moves by a small share of the step";
  EXPECT_TRUE(says(advice(shared, 3000, 1), "grows by 1 per step"));
  const TrainSettings signs{.heads = 2, .shared_norm = true, .optimizer = Optimizer::signum, .step = 1};
  EXPECT_TRUE(says(advice(signs, 3000, 0.01), "would grow by 2.4")) << "every entry moves by the whole step";
}

TEST(StepAdvice, TellsWhetherAdamHasForgottenItsStart) {
  TrainSettings adam{.optimizer = Optimizer::adam, .betas = {{0.9, 0.999}}, .step = 0.01, .epsilon = 0};
  EXPECT_TRUE(says(advice(adam, 6000, 1e-3), "a second beta of at most 0.9")) << advice(adam, 6000, 1e-3);
  EXPECT_EQ(advice(adam, 10'000'000, 1e-3), "");
  adam.betas = {{0.9, 0.95}};
  EXPECT_EQ(advice(adam, 6000, 1e-3), "");
  adam.epsilon = 1e-8;
  EXPECT_EQ(advice(adam, 6000, 1e-3), "") << "a gap of 6 is far from 18";
  EXPECT_TRUE(says(advice(adam, 6000, 3e-3), "at about 18"));
  adam.epsilon = 2;
  EXPECT_EQ(advice(adam, 6000, 3e-3), "");
  adam.betas = {{0.9, 0.5}};
  EXPECT_TRUE(says(advice(adam, 6000, 1e-3), "square of the first"));
}

TEST(StepAdvice, ReadsOnlyItsOwnWords) {
  const std::vector<Index> at{50, 100};
  const std::vector<double> gaps{50, 100};
  const auto of = [&](std::string_view words) {
    return step_advice({.settings = words, .steps = at, .gaps = gaps, .margin = kMargin, .rho = 0.5});
  };
  EXPECT_NE(of("W, signum, step 0.1"), "");
  EXPECT_EQ(of("W, signum"), "") << "nothing is known about its steps";
  EXPECT_EQ(of(""), "");
  EXPECT_TRUE(says(of("W, adam, step 0.1, epsilon 0.5"), "epsilon 0.5"));
  EXPECT_FALSE(says(of("W, adam, step 0.1, epsilon 0.5 for the head"), "0.5"));
}

TEST(StepAdvice, ReadsWhatIsWritten) {
  const TrainSettings settings{.param = Parametrization::KQ,
                               .optimizer = Optimizer::lion,
                               .betas = {{0.25, 0.75}},
                               .step = 0.0625,
                               .steps = 777,
                               .schedule = Schedule::sqrt,
                               .weight_decay = 0.125,
                               .dropout = 0.5,
                               .label_smoothing = 0.25};
  const auto read = rule_from_words(words_of(settings));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->param, settings.param);
  EXPECT_EQ(read->optimizer, settings.optimizer);
  EXPECT_EQ(read->betas, settings.betas);
  EXPECT_EQ(read->step, settings.step);
  EXPECT_EQ(read->steps, settings.steps);
  EXPECT_EQ(read->schedule, settings.schedule);
  EXPECT_EQ(read->weight_decay, settings.weight_decay);
  EXPECT_EQ(read->dropout, settings.dropout);
  EXPECT_EQ(read->label_smoothing, settings.label_smoothing);
  const auto many = rule_from_words(words_of({.heads = 12, .shared_norm = true, .temperature = {2, 0.5}}));
  ASSERT_TRUE(many);
  EXPECT_EQ(many->heads, 12);
  EXPECT_TRUE(many->shared_norm);
  EXPECT_EQ(many->temperature, (std::array<double, 2>{2, 0.5}));
  const auto joint = rule_from_words(words_of({.joint = true, .epsilon = 0.5, .head_epsilon = 0.25}));
  ASSERT_TRUE(joint);
  EXPECT_EQ(joint->epsilon, 0.5);
}

}  // namespace
}  // namespace attsvm::internal
