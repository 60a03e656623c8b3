// Gradients against the autodiff oracle, finite differences, and MPFR where doubles underflow.
#include "train/gradient.h"

#include <cmath>
#include <limits>

#include "attsvm/train.h"
#include "base/random.h"
#include "support.h"
#include "train/parameters.h"
#include "train_oracle.h"

namespace attsvm {
namespace {

using test::Real;

constexpr double kNone = -std::numeric_limits<double>::infinity();

/// Numbers in ±1 that depend on the seed alone.
std::vector<double> numbers(Index count, std::uint32_t seed) {
  const Random random(seed, 0, 77);
  std::vector<double> list;
  for (Index k = 0; k < count; ++k) list.push_back(2 * random.uniform(static_cast<std::uint64_t>(k)) - 1);
  return list;
}

RowMatrix matrix(Index rows, Index cols, std::uint32_t seed, double scale = 1) {
  return scale * ConstRows(numbers(rows * cols, seed).data(), rows, cols);
}

/// A small task of each kind: ragged, with keys of their own, and several queries per sequence if the kind allows it.
AttentionTask make_task(QueryPattern pattern, HeadKind head, bool own_keys, std::uint32_t seed) {
  const Drawn drawn = generate(
      {.n = 3, .T = 4, .d = 3, .shortest = 2, .pattern = pattern, .head = head, .hidden = 4, .lambda = 0.3}, seed);
  TaskArrays arrays = drawn.task.arrays();
  if (own_keys) arrays.keys = Array::own(numbers(drawn.task.tokens() * 2, seed + 50), {drawn.task.tokens(), 2});
  return AttentionTask(arrays);
}

LossGradient evaluate(const AttentionTask& task, const RowMatrix& W, const Head& head, PassSettings settings,
                      const PassChoice& choice = {}) {
  Threads threads(1);
  LossGradient out;
  GradientPass(task, settings, threads).evaluate(W, head, choice, out);
  return out;
}

RowMatrix value(const ScaledMatrix& scaled) { return scaled.direction * std::exp(scaled.log_scale); }

struct Case {
  AttentionTask task;
  Loss loss;
  std::string name;
};

std::vector<Case> every_case() {
  std::vector<Case> cases;
  std::uint32_t seed = 0;
  for (const QueryPattern pattern :
       {QueryPattern::prompt, QueryPattern::cross, QueryPattern::self, QueryPattern::causal}) {
    for (const HeadKind head : {HeadKind::linear, HeadKind::hidden, HeadKind::quadratic}) {
      for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
        for (const bool own_keys : {false, true}) {
          cases.push_back({make_task(pattern, head, own_keys, ++seed), loss,
                           std::to_string(static_cast<int>(pattern)) + " " + std::string(name_of(head)) + " " +
                               std::string(name_of(loss)) + (own_keys ? " keys" : "")});
        }
      }
    }
  }
  return cases;
}

TEST(Gradient, IsThatOfTheAutodiffOracleInEveryCase) {
  for (const Case& c : every_case()) {
    SCOPED_TRACE(c.name);
    const Index d = c.task.key_size(), dz = c.task.query_size();
    const RowMatrix W = matrix(d, dz, 5, 3);
    const Eigen::VectorXd& v = c.task.head().v;
    const auto expected = test::oracle_gradient<double>(c.task, c.loss, W, v);
    const double loss = test::plain_loss(c.task, c.loss, std::vector<double>(W.data(), W.data() + W.size()),
                                         std::vector<double>(v.data(), v.data() + v.size()));
    for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
      const LossGradient got =
          evaluate(c.task, W, c.task.head(), {.loss = c.loss, .arithmetic = arithmetic, .head_gradient = true});
      const ConstRows G(expected.data(), d, dz);
      EXPECT_LE((value(got.W) - G).norm(), 1e-13 * (1 + G.norm()));
      const ConstVector head(expected.data() + d * dz, v.size());
      EXPECT_LE((value(got.v) - head).norm(), 1e-13 * (1 + head.norm()));
      EXPECT_NEAR(got.loss, loss, 1e-14 * (1 + std::abs(loss)));
      if (loss > 0) {
        EXPECT_NEAR(got.log_loss, std::log(loss), 1e-13 * (1 + 1 / loss));
      }
      EXPECT_NEAR(got.W.log_norm(), std::log(G.norm()), 1e-10);
    }
  }
}

TEST(Gradient, ChainRuleIsThatOfFiniteDifferences) {
  for (const Case& c : every_case()) {
    SCOPED_TRACE(c.name);
    const Index d = c.task.key_size(), dz = c.task.query_size(), width = 2;
    Parameters point{.arrays = {matrix(d, width, 6), matrix(dz, width, 7), c.task.head().v},
                     .param = Parametrization::KQ,
                     .joint = true};
    constexpr double kRidge = 0.01, kMove = 1e-6;
    for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
      const auto objective = [&](Parameters& at) {
        at.form_product();
        Head head = c.task.head();
        head.v = at.v();
        return evaluate(c.task, at.W(), head, {.loss = c.loss, .arithmetic = arithmetic}).loss +
               kRidge * (at.K().squaredNorm() + at.Q().squaredNorm());
      };
      point.form_product();
      const LossGradient at =
          evaluate(c.task, point.W(), c.task.head(), {.loss = c.loss, .arithmetic = arithmetic, .head_gradient = true});
      ChainRule chain;
      const auto gradients = chain.apply(point, at, kRidge, arithmetic);
      ASSERT_EQ(gradients.size(), 3U);
      for (std::size_t a = 0; a < 3; ++a) {
        const RowMatrix exact = value(*gradients[a]);
        for (Index k = 0; k < exact.size(); ++k) {
          Parameters up = point, down = point;
          up.arrays[a].data()[k] += kMove;
          down.arrays[a].data()[k] -= kMove;
          EXPECT_NEAR(exact.data()[k], (objective(up) - objective(down)) / (2 * kMove), 2e-9) << a << " " << k;
        }
      }
    }
  }
}

/// The direction and the size of the exact gradient against 20,000 bits.
void expect_exact(const AttentionTask& task, Loss loss, const RowMatrix& W, double tolerance, double at_least_small,
                  double smoothing = 0) {
  const Eigen::VectorXd& v = task.head().v;
  const auto oracle = test::oracle_gradient<Real>(task, loss, W, v, smoothing);
  const LossGradient got =
      evaluate(task, W, task.head(), {.loss = loss, .label_smoothing = smoothing, .head_gradient = true});
  const auto compare = [&](const ScaledMatrix& gradient, std::size_t first) {
    Real square(0);
    for (Index k = 0; k < gradient.direction.size(); ++k) {
      const Real& entry = oracle[first + static_cast<std::size_t>(k)];
      square = square + entry * entry;
    }
    ASSERT_FALSE(square.is_zero());
    const Real norm = sqrt(square);
    const double log_norm = log(norm).to_double();
    EXPECT_NEAR(gradient.log_norm(), log_norm, tolerance * (1 + std::abs(log_norm)));
    const RowMatrix unit = gradient.direction / gradient.direction.norm();
    for (Index k = 0; k < unit.size(); ++k) {
      const double expected = (oracle[first + static_cast<std::size_t>(k)] / norm).to_double();
      EXPECT_NEAR(unit.data()[k], expected, tolerance);
    }
    if (first == 0) {
      EXPECT_LE(log_norm / std::log(10.0), at_least_small) << "the case is not saturated";
    }
  };
  compare(got.W, 0);
  compare(got.v, static_cast<std::size_t>(W.size()));
}

AttentionTask cross_task(const std::vector<double>& tokens, Index n, Index T, const std::vector<double>& queries,
                         const std::vector<double>& head, const std::vector<double>& keys = {}) {
  const Index dv = static_cast<Index>(tokens.size()) / (n * T);
  TaskArrays arrays{.tokens = Array::own(tokens, {n, T, dv}),
                    .queries = Array::own(queries, {n, static_cast<Index>(queries.size()) / n}),
                    .head = Array::own(head, {dv})};
  if (!keys.empty()) arrays.keys = Array::own(keys, {n, T, static_cast<Index>(keys.size()) / (n * T)});
  return AttentionTask(arrays);
}

TEST(Saturation, GradientsDownTo1eMinus4000) {
  for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
    for (const auto& [scale, digits] : {std::pair{30.0, -1.0}, {1000.0, -20.0}, {60'000.0, -1500.0}}) {
      const AttentionTask task = make_task(QueryPattern::cross, HeadKind::linear, false, 3);
      expect_exact(task, loss, matrix(3, 3, 9, scale), 1e-11, digits);
    }
  }
  // The extreme case: W is scaled up until the gradient is 1e-4050.
  const AttentionTask task = cross_task(numbers(2 * 4 * 3, 1), 2, 4, {1, 0.2, 1, 0.3}, {0.3, -0.8, 0.5});
  RowMatrix W = matrix(3, 2, 12, 1000);
  for (int k = 0; k < 3; ++k) W *= -4050 * std::log(10.0) / evaluate(task, W, task.head(), {}).W.log_norm();
  expect_exact(task, Loss::logistic, W, 1e-11, -4000);
}

TEST(Saturation, SmoothedLabels) {
  for (const double smoothing : {0.25, 0.9375}) {  // outputs stay below their aim, or pass it
    for (const auto& [scale, digits] : {std::pair{1000.0, -20.0}, {60'000.0, -1500.0}}) {
      const AttentionTask task = make_task(QueryPattern::cross, HeadKind::linear, false, 3);
      expect_exact(task, Loss::logistic, matrix(3, 3, 9, scale), 1e-11, digits, smoothing);
    }
  }
}

TEST(Gradient, SmoothedLabelsAreThoseOfTheOracle) {
  for (const Case& c : every_case()) {
    if (c.loss != Loss::logistic) continue;
    SCOPED_TRACE(c.name);
    const RowMatrix W = matrix(c.task.key_size(), c.task.query_size(), 5, 3);
    const Eigen::VectorXd& v = c.task.head().v;
    for (const double smoothing : {0.25, 0.9375}) {
      const auto expected = test::oracle_gradient<double>(c.task, c.loss, W, v, smoothing);
      const double loss = test::plain_loss(c.task, c.loss, std::vector<double>(W.data(), W.data() + W.size()),
                                           std::vector<double>(v.data(), v.data() + v.size()), smoothing);
      const ConstRows G(expected.data(), W.rows(), W.cols());
      const ConstVector head(expected.data() + W.size(), v.size());
      for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
        for (const bool trained : {true, false}) {
          const LossGradient got = evaluate(
              c.task, W, c.task.head(),
              {.loss = c.loss, .label_smoothing = smoothing, .arithmetic = arithmetic, .head_gradient = trained});
          EXPECT_LE((value(got.W) - G).norm(), 1e-13 * (1 + G.norm()));
          EXPECT_NEAR(got.loss, loss, 1e-14 * (1 + loss));
          EXPECT_NEAR(got.log_loss, std::log(loss), 1e-13);
          if (trained) {
            EXPECT_LE((value(got.v) - head).norm(), 1e-13 * (1 + head.norm()));
          }
        }
      }
    }
  }
}

/// One query, scores 2 and 0: smoothing 0.5 asks for log 3, which both tokens together give.
TEST(Gradient, SmoothedLabelsHoldOutputsAtTheirAim) {
  const AttentionTask task = cross_task({2, 0}, 1, 2, {1}, {1}, {1, 0});
  Threads threads(1);
  const TrainedRun run =
      train(task, {.optimizer = Optimizer::gd, .step = 4, .steps = 500, .label_smoothing = 0.5}, threads);
  EXPECT_NEAR(2 / (1 + std::exp(-run.W(0, 0))), std::log(3), 1e-12);
}

TEST(Saturation, OneSurvivorUnderNonlinearHeads) {
  for (const HeadKind head : {HeadKind::hidden, HeadKind::quadratic}) {
    for (const QueryPattern pattern : {QueryPattern::causal, QueryPattern::self, QueryPattern::cross}) {
      const AttentionTask task = make_task(pattern, head, false, 21);
      expect_exact(task, Loss::logistic, matrix(3, 3, 9, 20'000), 1e-10, -50);
    }
  }
}

/// Token 1 ties with the peak (token 0) and outweighs token 2 by e^700 and more.
TEST(Saturation, TokensTiedWithThePeak) {
  for (const double scale : {1.0, 100.0, 3000.0}) {
    const AttentionTask task =
        cross_task({1, 0, 0.5, 0.6, 0.2, 0.5, -1, 0.3, 0.2, 0.9, 0.1, 0.4, 0.3, 0.3, 0.4, -0.7, -0.2, 0.9}, 2, 3,
                   {1, 1}, {0, 0, 1});
    const RowMatrix W = (RowMatrix(3, 1) << scale, 0.1 * scale, 0).finished();
    expect_exact(task, Loss::logistic, W, 1e-11, scale > 1 ? -20 : 0);
  }
  // Scores that differ only by rounding tie: 0.1 + 0.2 and 0.3.
  const AttentionTask rounded = cross_task({0.1, 0.2, 0.3, 0.0, 0.5, -0.4}, 1, 3, {1}, {1, 1}, {3, 0, 2, 1, -1, 1});
  Threads threads(1);
  LossGradient at;
  GradientPass(rounded, {}, threads).evaluate((RowMatrix(2, 1) << 300, 7).finished(), rounded.head(), {}, at);
  EXPECT_LT(at.W.log_norm(), -1100) << "the tie must not be taken for a signal";
}

TEST(Saturation, ScoresThatNearlyTie) {
  const AttentionTask task = cross_task({1, 1, 1 + 1e-13, 2, -3, 0.5}, 1, 3, {1}, {1, 0}, {4, 0.3, 2, 1, -1, 1});
  expect_exact(task, Loss::exponential, (RowMatrix(2, 1) << 900, 11).finished(), 1e-11, -700);
}

TEST(Saturation, EqualLogitsAtThePeak) {
  const AttentionTask task =
      cross_task({1, 0, 0, 1, 0.4, 0.4, -1, 0.5}, 1, 4, {1}, {0.7, -0.2}, {2, 1, 2, 1, 0, 1, 1, -2});
  expect_exact(task, Loss::logistic, (RowMatrix(2, 1) << 400, 3).finished(), 1e-11, 1);
  const AttentionTask tied =
      cross_task({1, 0, 1, 5, 0.4, 0.4, -1, 0.5}, 1, 4, {1}, {0.7, 0}, {2, 1, 2, 1, 0, 1, 1, -2});
  expect_exact(tied, Loss::logistic, (RowMatrix(2, 1) << 400, 3).finished(), 1e-11, -100);
}

TEST(Gradient, QueriesWithoutASignal) {
  const AttentionTask equal = cross_task({1, 2, 1, 5}, 1, 2, {1}, {1, 0}, {1, 0, 0, 1});
  const AttentionTask alone = cross_task({1, 2}, 1, 1, {1}, {1, 0});
  for (const AttentionTask& task : {equal, alone}) {
    for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
      const LossGradient at =
          evaluate(task, RowMatrix::Ones(2, 1), task.head(), {.arithmetic = arithmetic, .head_gradient = true});
      EXPECT_TRUE(at.W.is_zero());
      EXPECT_EQ(at.W.log_norm(), kNone);
      EXPECT_FALSE(at.v.is_zero());
      EXPECT_NEAR(at.loss, std::log1p(std::exp(-1.0)), 1e-15);
    }
  }
}

TEST(Gradient, LossesBeyondUnderflow) {
  const AttentionTask task = cross_task({3000, 0, 2000, 1}, 1, 2, {1}, {1, 0});
  const LossGradient at = evaluate(task, RowMatrix::Zero(2, 1), task.head(), {.loss = Loss::logistic, .excess = true});
  EXPECT_EQ(at.loss, 0);
  EXPECT_DOUBLE_EQ(at.log_loss, -2500);
  EXPECT_DOUBLE_EQ(at.log_excess, -2500);  // e^-3000 does not count beside e^-2500
  EXPECT_NEAR(at.W.log_norm(), -2500 + std::log(500.0 * std::hypot(500, 0.5)), 1e-9);
}

/// L − L* where subtraction loses all digits, compared with MPFR.
TEST(Gradient, ExcessWithoutCancellation) {
  for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
    for (const double scale : {0.5, 40.0, 2000.0}) {
      const AttentionTask task = make_task(QueryPattern::cross, HeadKind::linear, false, 8);
      Real best(0);
      RowMatrix W = RowMatrix::Zero(3, 3);
      const OptimalTokens optimal = optimal_tokens(task);
      for (Index i = 0; i < task.queries(); ++i) {
        const Index t = optimal.selection.first(i);
        W += task.keys(task.sequence(i)).row(t).transpose() * task.query(i).transpose();
        Real score(0);
        for (Index j = 0; j < 3; ++j)
          score = score + Real(task.values(task.sequence(i))(t, j)) * Real(task.head().v[j]);
        const Real u = Real(task.label(i)) * score;
        best = best + (loss == Loss::logistic      ? log(Real(1) + exp(Real(0) - u))
                       : loss == Loss::exponential ? exp(Real(0) - u)
                                                   : Real(0) - u);
      }
      W *= scale;
      const std::vector<Real> weights(W.data(), W.data() + W.size()),
          head(task.head().v.data(), task.head().v.data() + 3);
      const Real excess =
          test::plain_loss(task, loss, weights, head) - best / Real(static_cast<double>(task.queries()));
      const LossGradient at = evaluate(task, W, task.head(), {.loss = loss, .excess = true});
      EXPECT_NEAR(at.log_excess, log(excess).to_double(), 1e-11 * (1 + scale)) << name_of(loss) << " " << scale;
    }
  }
}

/// Dropout is a mask on the softmax: the mean over the queries of a task whose dropped scores are 0.
TEST(Gradient, DropoutIsTheGradientOfTheMaskedLoss) {
  for (const HeadKind kind : {HeadKind::linear, HeadKind::hidden, HeadKind::quadratic}) {
    const AttentionTask task = make_task(QueryPattern::cross, kind, false, 4);
    const PassChoice choice{.dropout = 0.4, .seed = 9, .step = 17};
    const RowMatrix W = matrix(3, 3, 5, 2);
    for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
      const PassSettings settings{.arithmetic = arithmetic};
      const RowMatrix G = value(evaluate(task, W, task.head(), settings, choice).W);
      for (Index k = 0; k < W.size(); ++k) {
        RowMatrix up = W, down = W;
        up.data()[k] += 1e-6;
        down.data()[k] -= 1e-6;
        const double slope = (evaluate(task, up, task.head(), settings, choice).loss -
                              evaluate(task, down, task.head(), settings, choice).loss) /
                             2e-6;
        EXPECT_NEAR(G.data()[k], slope, 2e-9);
      }
    }
    PassChoice other = choice;
    other.step = 19;
    EXPECT_NE(evaluate(task, W, task.head(), {}, choice).loss, evaluate(task, W, task.head(), {}, other).loss);
  }
}

TEST(Gradient, MinibatchesAddUpToTheWhole) {
  const AttentionTask task = make_task(QueryPattern::causal, HeadKind::linear, false, 4);
  const RowMatrix W = matrix(3, 3, 5, 2);
  RowMatrix sum = RowMatrix::Zero(3, 3);
  const Index q = task.queries();
  for (Index first = 0; first < q; first += 2) {
    std::vector<Index> some{first};
    if (first + 1 < q) some.push_back(first + 1);
    sum += value(evaluate(task, W, task.head(), {}, {.queries = some}).W) * static_cast<double>(some.size());
  }
  EXPECT_LE((sum / static_cast<double>(q) - value(evaluate(task, W, task.head(), {}).W)).norm(), 1e-15);
}

TEST(Attention, LogWeightsDoNotUnderflow) {
  Threads threads(1);
  const AttentionTask task = cross_task({0, 0, 5, 0, 3, 0}, 1, 3, {1}, {1, 0});
  const AttentionMap map = attention_map(task, (RowMatrix(2, 1) << 1000, 0).finished(), threads);
  EXPECT_EQ(map.selected, std::vector<Index>{1});
  EXPECT_EQ(map.log_weights(0, 0), -5000);
  EXPECT_EQ(map.log_weights(0, 2), -2000);
  EXPECT_EQ(map.weight(0), 1);
  EXPECT_DOUBLE_EQ(mean_weight(task, RowMatrix::Zero(2, 1), std::vector<Index>{2}, threads), 1 / 3.0);
}

}  // namespace
}  // namespace attsvm
