// Selectors, entropy and temperature: draws and gradients against 66 digits and finite differences.
#include "attsvm/selector.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "support.h"
#include "train/gamma_draw.h"
#include "train/gradient.h"
#include "train/streams.h"
#include "train_oracle.h"

namespace attsvm {
namespace {

using test::Digits;
using test::expect_refusal;
using test::Real;

AttentionTask drawn_task(HeadKind head = HeadKind::linear, Index n = 3, std::uint32_t seed = 3) {
  return generate({.n = n, .T = 4, .d = 3, .shortest = 2, .head = head, .hidden = 4, .lambda = 0.3}, seed).task;
}

RowMatrix drawn_matrix(Index rows, Index cols, double scale, std::uint32_t seed = 9) {
  RowMatrix matrix(rows, cols);
  const Random random(seed, 0, 77);
  for (Index k = 0; k < matrix.size(); ++k)
    matrix.data()[k] = scale * (2 * random.uniform(static_cast<std::uint64_t>(k)) - 1);
  return matrix;
}

LossGradient pass_at(const AttentionTask& task, const RowMatrix& W, const PassChoice& choice,
                     PassSettings settings = {}, int threads = 1) {
  Threads some(threads);
  LossGradient out;
  GradientPass(task, settings, some).evaluate(W, task.head(), choice, out);
  return out;
}

RowMatrix ordinary(const ScaledMatrix& scaled) { return scaled.direction * std::exp(scaled.log_scale); }

/// The share of a gamma distribution below y, to 66 digits.
Digits gamma_share(const Digits& alpha, const Digits& y) {
  mpfr_t shape, at, above, all;
  for (mpfr_t* number : {&shape, &at, &above, &all}) mpfr_init2(*number, 400);
  const auto put = [](mpfr_t& to, const Digits& from) {  // in two parts, since Digits hold more than a double
    const double high = from.to_double();
    mpfr_set_d(to, high, MPFR_RNDN);
    mpfr_add_d(to, to, (from - Digits(high)).to_double(), MPFR_RNDN);
  };
  put(shape, alpha);
  put(at, y);
  mpfr_gamma_inc(above, shape, at, MPFR_RNDN);
  mpfr_gamma(all, shape, MPFR_RNDN);
  mpfr_sub(above, all, above, MPFR_RNDN);
  mpfr_div(above, above, all, MPFR_RNDN);
  Digits share(0);
  for (int part = 0; part < 3; ++part) {
    const double number = mpfr_get_d(above, MPFR_RNDN);
    share = share + Digits(number);
    mpfr_sub_d(above, above, number, MPFR_RNDN);
  }
  for (mpfr_t* number : {&shape, &at, &above, &all}) mpfr_clear(*number);
  return share;
}

TEST(GammaDraw, IsTheQuantileAndItsDerivative) {
  for (const double alpha : {0.01, 0.2, 1.0, 2.5, 9.0, 60.0, 400.0}) {
    for (const double uniform : {1e-6, 0.03, 0.4, 0.7, 0.99, 1 - 1e-9}) {
      SCOPED_TRACE(testing::Message() << "shape " << alpha << ", share " << uniform);
      const GammaDraw draw = draw_gamma(alpha, uniform);
      const double y = std::exp(draw.log_value);
      if (y < 1e-300) {  // far below: log y = (log(uniform) + log Γ(α+1))/α
        EXPECT_NEAR(draw.log_value, (std::log(uniform) + std::lgamma(alpha + 1)) / alpha,
                    1e-13 * std::abs(draw.log_value));
        continue;
      }
      constexpr double kMove = 1e-14;
      const Digits shape(alpha), at(y), move(kMove);
      const Digits share = gamma_share(shape, at);
      const Digits by_shape = (gamma_share(shape + move, at) - gamma_share(shape - move, at)) / Digits(2 * kMove);
      const Digits by_value =
          (gamma_share(shape, at * (Digits(1) + move)) - gamma_share(shape, at * (Digits(1) - move))) /
          Digits(2 * kMove);                                                  // y times the density
      const double off = ((share - Digits(uniform)) / by_value).to_double();  // of log y
      EXPECT_LE(std::abs(off), 1e-11 * (1 + std::abs(draw.log_value)));
      const double slope = (Digits(0) - by_shape / by_value).to_double();
      EXPECT_NEAR(std::exp(draw.log_slope), slope, 1e-10 * slope);
    }
  }
}

TEST(GammaDraw, GoesFarBelowTheSmallestDouble) {
  const GammaDraw draw = draw_gamma(1e-200, 0.5);
  EXPECT_NEAR(draw.log_value / (std::log(0.5) * 1e200), 1, 1e-14);
  EXPECT_NEAR(draw.log_slope, std::log(-std::log(0.5)) + 400 * std::log(10.0), 1e-9);
  EXPECT_EQ(draw_gamma(0, 0.5).log_value, -std::numeric_limits<double>::infinity());
}

TEST(Selector, DirichletGradientIsThatOfTheLossAtTheSameDraws) {
  for (const HeadKind kind : {HeadKind::linear, HeadKind::hidden, HeadKind::quadratic}) {
    const AttentionTask task = drawn_task(kind);
    for (const double concentration : {1.0, 10.0}) {
      const PassChoice choice{
          .selector = Selector::dirichlet, .concentration = concentration, .seed = 5, .instance = 2, .step = 11};
      const RowMatrix W = drawn_matrix(3, 3, 1);
      const LossGradient at = pass_at(task, W, choice, {.head_gradient = true});
      for (Index k = 0; k < W.size(); ++k) {
        RowMatrix up = W, down = W;
        up.data()[k] += 1e-5;
        down.data()[k] -= 1e-5;
        const double slope = (pass_at(task, up, choice).loss - pass_at(task, down, choice).loss) / 2e-5;
        EXPECT_NEAR(ordinary(at.W).data()[k], slope, 1e-8) << name_of(kind) << " " << concentration;
      }
      EXPECT_FALSE(at.v.is_zero());
    }
  }
}

/// The mean of Dirichlet weights is the softmax, and so is that of the tokens which Gumbel noise draws.
TEST(Selector, DrawsHaveTheSoftmaxAsTheirMean) {
  const AttentionTask task = drawn_task();
  const RowMatrix W = drawn_matrix(3, 3, 1.5);
  const PassSettings linear{.loss = Loss::linear};
  const double expected = pass_at(task, W, {}, linear).loss;
  constexpr Index kDraws = 4000;
  for (const Selector selector : {Selector::gumbel, Selector::dirichlet}) {
    double sum = 0, squares = 0;
    for (Index step = 0; step < kDraws; ++step) {
      const double loss =
          pass_at(task, W, {.selector = selector, .concentration = 3, .seed = 1, .step = step}, linear).loss;
      sum += loss;
      squares += loss * loss;
    }
    const double mean = sum / kDraws, error = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    EXPECT_GT(error, 0);
    EXPECT_LE(std::abs(mean - expected), 4 * error) << name_of(selector);
  }
}

/// One query of two tokens, with the noise taken from its stream.
TEST(Selector, GumbelIsHardForwardAndSoftBackward) {
  const AttentionTask task({.tokens = Array::own(std::vector<double>{2, 0.5}, {1, 2, 1}),
                            .keys = Array::own(std::vector<double>{1, 0, 0, 1}, {1, 2, 2}),
                            .head = Array::own(std::vector<double>{1}, {1})});
  const RowMatrix W = (RowMatrix(2, 1) << 0.3, -0.2).finished();
  bool first = false, second = false;
  for (Index step = 0; step < 20; ++step) {
    const Random random(7, 0, kGumbel);
    const auto noise = [&](std::uint64_t t) {
      return -std::log(-std::log(random.uniform(static_cast<std::uint64_t>(step) * 2 + t)));
    };
    const double ahead = 0.5 + noise(0) - noise(1), s = 1 / (1 + std::exp(-ahead));
    const double u = ahead > 0 ? 2 : 0.5, slope = -1 / (1 + std::exp(u)) * s * (1 - s) * 1.5;
    const LossGradient at = pass_at(task, W, {.selector = Selector::gumbel, .seed = 7, .step = step});
    EXPECT_NEAR(at.loss, std::log1p(std::exp(-u)), 1e-15);
    EXPECT_LE((ordinary(at.W) - (RowMatrix(2, 1) << slope, -slope).finished()).norm(), 1e-14);
    (ahead > 0 ? first : second) = true;
  }
  EXPECT_TRUE(first && second);
}

/// Straight through by the definition, in numbers that do not underflow, with the noise that steps add to logits.
TEST(Selector, SaturatedGumbelGradientsAreThoseOfTheDefinition) {
  const AttentionTask task = drawn_task();
  const RowMatrix W = drawn_matrix(3, 3, 20'000);
  const Eigen::VectorXd& v = task.head().v;
  for (Index step = 0; step < 4; ++step) {
    const Random random(7, 0, kGumbel);
    auto place = static_cast<std::uint64_t>(step * task.visible().total());
    std::vector<Real> expected(9, Real(0));
    for (Index i = 0; i < task.queries(); ++i) {
      const ConstRows X = task.seen_keys(i);
      const ConstVector z = task.query(i);
      std::vector<Real> logits, scores;
      Index peak = 0;
      for (Index t = 0; t < X.rows(); ++t) {
        Real logit(-std::log(-std::log(random.uniform(place++)))), score(0);
        for (Index a = 0; a < 3; ++a) {
          score = score + Real(X(t, a)) * Real(v[a]);
          for (Index b = 0; b < 3; ++b) logit = logit + Real(X(t, a)) * Real(W(a, b)) * Real(z[b]);
        }
        logits.push_back(logit);
        scores.push_back(score);
        if ((logit - logits[static_cast<std::size_t>(peak)]).to_double() > 0) peak = t;
      }
      Real sum(0), mean(0);
      std::vector<Real> weights;
      for (std::size_t t = 0; t < logits.size(); ++t) {
        weights.push_back(exp(logits[t] - logits[static_cast<std::size_t>(peak)]));
        sum = sum + weights.back();
        mean = mean + weights.back() * scores[t];
      }
      mean = mean / sum;
      const Real y(task.label(i)), u = y * scores[static_cast<std::size_t>(peak)];
      const Real slope = (Real(0) - y) / (Real(1) + exp(u)) / Real(static_cast<double>(task.queries()));
      for (std::size_t t = 0; t < logits.size(); ++t) {
        const Real part = slope * weights[t] / sum * (scores[t] - mean);
        for (Index a = 0; a < 3; ++a) {
          for (Index b = 0; b < 3; ++b) {
            Real& entry = expected[static_cast<std::size_t>(3 * a + b)];
            entry = entry + part * Real(X(static_cast<Index>(t), a)) * Real(z[b]);
          }
        }
      }
    }
    Real square(0);
    for (const Real& entry : expected) square = square + entry * entry;
    const Real norm = sqrt(square);
    const LossGradient at = pass_at(task, W, {.selector = Selector::gumbel, .seed = 7, .step = step});
    const double log_norm = log(norm).to_double();
    EXPECT_LT(log_norm, -750) << "the case is not saturated";
    EXPECT_NEAR(at.W.log_norm(), log_norm, 1e-10 * std::abs(log_norm));
    const RowMatrix unit = at.W.direction / at.W.direction.norm();
    for (Index k = 0; k < 9; ++k)
      EXPECT_NEAR(unit.data()[k], (expected[static_cast<std::size_t>(k)] / norm).to_double(), 1e-9);
  }
}

/// Noise sets a twin of the drawn token apart from it, which must not hide the third token.
TEST(Selector, GumbelNoiseLeavesTwinsSilent) {
  const AttentionTask task({.tokens = Array::own(std::vector<double>{2, 2, 0}, {1, 3, 1}),
                            .keys = Array::own(std::vector<double>{1, 0, 1, 0, 0, 1}, {1, 3, 2}),
                            .head = Array::own(std::vector<double>{1}, {1})});
  const RowMatrix W = (RowMatrix(2, 1) << 3000, 0).finished();
  for (Index step = 0; step < 5; ++step) {
    const LossGradient at = pass_at(task, W, {.selector = Selector::gumbel, .seed = 7, .step = step});
    EXPECT_NEAR(at.W.log_norm(), -3000, 20);
    EXPECT_NEAR(at.W.direction(0) + at.W.direction(1), 0, 1e-15);
    EXPECT_LT(at.W.direction(0), 0);
  }
}

TEST(Entropy, GradientIsThatOfTheOracle) {
  for (const HeadKind kind : {HeadKind::linear, HeadKind::hidden, HeadKind::quadratic}) {
    const AttentionTask task = drawn_task(kind);
    const Eigen::VectorXd& v = task.head().v;
    for (const double beta : {0.01, 2.0}) {
      const RowMatrix W = drawn_matrix(3, 3, 2);
      const auto expected = test::oracle_gradient<double>(task, Loss::logistic, W, v, 0, beta);
      const LossGradient at = pass_at(task, W, {.entropy = beta}, {.head_gradient = true});
      EXPECT_LE((ordinary(at.W) - ConstRows(expected.data(), 3, 3)).norm(), 1e-13);
      EXPECT_LE((ordinary(at.v) - ConstVector(expected.data() + 9, v.size())).norm(), 1e-13);
      EXPECT_EQ(at.loss, pass_at(task, W, {}, {.head_gradient = true}).loss) << "the loss is without it";
    }
  }
}

/// Where one part is far below the other, or both are far below the smallest double.
TEST(Entropy, GradientsDownTo1eMinus1500) {
  const AttentionTask task = drawn_task();
  for (const auto& [scale, beta] : {std::pair{300.0, 1e-8}, {1000.0, 0.1}, {60'000.0, 1.0}, {60'000.0, 1e-300}}) {
    const RowMatrix W = drawn_matrix(3, 3, scale);
    const auto oracle = test::oracle_gradient<Real>(task, Loss::logistic, W, task.head().v, 0, beta);
    Real square(0);
    for (std::size_t k = 0; k < 9; ++k) square = square + oracle[k] * oracle[k];
    const Real norm = sqrt(square);
    const double log_norm = log(norm).to_double();
    const LossGradient at = pass_at(task, W, {.entropy = beta});
    EXPECT_NEAR(at.W.log_norm(), log_norm, 1e-11 * (1 + std::abs(log_norm)));
    const RowMatrix unit = at.W.direction / at.W.direction.norm();
    for (Index k = 0; k < 9; ++k)
      EXPECT_NEAR(unit.data()[k], (oracle[static_cast<std::size_t>(k)] / norm).to_double(), 1e-11);
    if (scale > 10'000) {
      EXPECT_LT(log_norm, -1500 * std::log(10.0));
    }
  }
}

TEST(Temperature, DividesLogitsInStepsAndNotInRecords) {
  const AttentionTask task = drawn_task();
  Threads threads(1);
  const RowMatrix W = drawn_matrix(3, 3, 2), half = W / 2;
  for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
    const TrainSettings settings{
        .optimizer = Optimizer::gd, .step = 0.5, .steps = 1, .temperature = {2, 2}, .arithmetic = arithmetic};
    const TrainedRun run = train(task, settings, threads, {.W = W});
    const RowMatrix expected = W - 0.25 * ordinary(pass_at(task, half, {}).W);
    EXPECT_LE((run.W - expected).norm(), 1e-14);
    EXPECT_NEAR(run.records[0].loss, pass_at(task, W, {}).loss, 1e-14);
  }
  const TrainSettings cooling{.steps = 4, .temperature = {16, 1}};
  for (Index step = 0; step <= 4; ++step)
    EXPECT_NEAR(scheduled_temperature(cooling, step), std::pow(2, 4 - static_cast<double>(step)), 1e-13);
}

TEST(Selector, RunsHaveTheSameBitsForAnyThreadsAndAfterABreak) {
  const AttentionTask task = generate({.n = 800, .T = 8, .d = 8}, 3).task;  // several chunks
  Threads one(1), three(3);
  for (const Selector selector : {Selector::gumbel, Selector::dirichlet}) {
    const TrainSettings settings{
        .steps = 12, .selector = selector, .entropy = 0.1, .temperature = {2, 0.5}, .seed = 4, .record = {.every = 4}};
    const TrainedRun run = train(task, settings, one);
    EXPECT_EQ(train(task, settings, three).W, run.W);
    TrainSettings other = settings;
    other.seed = 5;
    EXPECT_NE(train(task, other, one).W, run.W);
    TrainSettings part = settings;
    part.progress = [](const TrainProgress& now) { return now.step == 5; };
    Trainer begun(task, part, one), second(task, settings, one);
    ASSERT_EQ(begun.run([](const Record&) {}), TrainStop::asked);
    second.restore(begun.state());
    ASSERT_EQ(second.run([](const Record&) {}), TrainStop::finished);
    EXPECT_EQ(second.result().W, run.W);
    EXPECT_EQ(run.records.back().loss, pass_at(task, run.W, {}).loss) << "records are of the softmax";
  }
}

TEST(Selector, HardSelectionAndEntropyAreAsDefined) {
  const AttentionTask task({.tokens = Array::own(std::vector<double>{2, -1, 0.5, 3}, {2, 2, 1}),
                            .keys = Array::own(std::vector<double>{1, 0, 0, 1, 1, 0, 0, 1}, {2, 2, 2}),
                            .labels = Array::own(std::vector<double>{1, -1}, {2}),
                            .head = Array::own(std::vector<double>{1}, {1})});
  Threads threads(1);
  const RowMatrix W = (RowMatrix(2, 1) << 800, 0).finished();
  const HardSelection hard = hard_selection(task, task.head(), Loss::logistic, attention_map(task, W, threads));
  EXPECT_EQ(hard.accuracy, 0.5);
  EXPECT_NEAR(hard.loss, (std::log1p(std::exp(-2)) + std::log1p(std::exp(0.5))) / 2, 1e-15);
  EXPECT_EQ(mean_entropy(task, W, threads), 0) << "e^-800 · 800 is below the smallest double";
  EXPECT_NEAR(mean_entropy(task, W / 8, threads) / (101 * std::exp(-100)), 1, 1e-14);
  EXPECT_NEAR(mean_entropy(task, 0 * W, threads), std::log(2), 1e-15);
}

TEST(Selector, RefusesWhatMakesNoSense) {
  const AttentionTask task = drawn_task();
  Threads threads(1);
  const auto refused = [&](const TrainSettings& settings, const std::vector<std::string>& words) {
    expect_refusal([&] { train(task, settings, threads); }, words);
  };
  refused({.entropy = -1}, {"entropy = -1"});
  refused({.entropy = std::nan("")}, {"entropy"});
  refused({.temperature = {1, 0}}, {"temperature = 0"});
  refused({.concentration = 3}, {"concentration", "dirichlet"});
  refused({.selector = Selector::dirichlet, .concentration = 0}, {"concentration = 0"});
  refused({.dropout = .5, .selector = Selector::gumbel}, {"dropout", "soft", "gumbel"});
  refused({.selector = Selector::gumbel, .arithmetic = Arithmetic::plain}, {"gumbel", "exact"});
  refused({.entropy = 1, .arithmetic = Arithmetic::plain}, {"entropy", "exact"});
  refused({.optimizer = Optimizer::polyak, .entropy = 1}, {"polyak", "entropy"});
  const AttentionTask next = generate({.law = Law::next_token}, 1).task;
  expect_refusal([&] { train(next, {.selector = Selector::gumbel}, threads); }, {"next-token", "soft"});
  expect_refusal([&] { train(next, {.entropy = 1}, threads); }, {"next-token", "entropy"});
}

}  // namespace
}  // namespace attsvm
