// The loss of next-token tasks and its gradient, against numbers of 20,000 bits, in which nothing underflows or
// cancels.
#include "train/label_pass.h"

#include <fmt/format.h>

#include <cmath>

#include "base/random.h"
#include "support.h"
#include "train_oracle.h"

namespace attsvm {
namespace {

using test::Real;

struct Oracle {
  Real loss;
  std::vector<Real> gradient;  // ∂L/∂W, row-major
};

/// By the definition: mean of ℓ(log(p/(1−p))) with p the attention on all copies of the label, differentiated by hand.
Oracle differentiate(const AttentionTask& task, Loss loss, const RowMatrix& W) {
  const ConstRows E = task.embeddings();
  const Index d = E.cols();
  const Real count(static_cast<double>(task.queries()));
  Oracle out{Real(0), std::vector<Real>(static_cast<std::size_t>(d * d), Real(0))};
  for (Index i = 0; i < task.queries(); ++i) {
    const auto ids = task.ids(i);
    const auto z = E.row(task.last(i));
    std::vector<Real> weight;
    Real on(0), off(0);
    for (const Index id : ids) {
      Real logit(0);
      for (Index a = 0; a < d; ++a) {
        for (Index b = 0; b < d; ++b) logit = logit + Real(E(id, a)) * Real(W(a, b)) * Real(z(b));
      }
      weight.push_back(exp(logit));
      (id == task.next(i) ? on : off) = (id == task.next(i) ? on : off) + weight.back();
    }
    if (off.is_zero()) continue;
    const Real odds = off / on;  // e^{−u}
    out.loss = out.loss + (loss == Loss::logistic      ? log(Real(1) + odds)
                           : loss == Loss::exponential ? odds
                                                       : log(odds)) /
                              count;
    const Real slope = (loss == Loss::logistic      ? odds / (Real(1) + odds)
                        : loss == Loss::exponential ? odds
                                                    : Real(1)) /
                       count;  // |ℓ′(u)|
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const bool label = ids[t] == task.next(i);
      const Real share = weight[t] / (label ? on : off) * (label ? Real(-1) : Real(1)) * slope;
      for (Index a = 0; a < d; ++a) {
        for (Index b = 0; b < d; ++b) {
          Real& entry = out.gradient[static_cast<std::size_t>(a * d + b)];
          entry = entry + share * Real(E(ids[t], a)) * Real(z(b));
        }
      }
    }
  }
  return out;
}

/// How far the gradient of the pass is from the oracle's, relative to the oracle's norm.
void expect_oracle(const AttentionTask& task, Loss loss, const RowMatrix& W, double tolerance) {
  Threads threads(2);
  LossGradient got;
  GradientPass(task, {.loss = loss}, threads).evaluate(W, task.head(), {}, got);
  const Oracle expected = differentiate(task, loss, W);
  Real square(0), error(0);
  const Real scale = exp(Real(got.W.log_scale));
  for (std::size_t k = 0; k < expected.gradient.size(); ++k) {
    const Real& entry = expected.gradient[k];
    const Real off = Real(got.W.direction.data()[k]) * scale - entry;
    square = square + entry * entry;
    error = error + off * off;
  }
  ASSERT_FALSE(square.is_zero());
  EXPECT_LE(sqrt(error / square).to_double(), tolerance);
  EXPECT_NEAR(got.W.log_norm(), log(square).to_double() / 2, 1e-9);
  if (loss != Loss::linear) {
    EXPECT_NEAR(got.log_loss, log(expected.loss).to_double(), 1e-10 * (1 + std::abs(got.log_loss)));
  } else {
    EXPECT_NEAR(got.loss, expected.loss.to_double(), 1e-10 * (1 + std::abs(got.loss)));
  }
}

RowMatrix random_point(Index d, std::uint32_t seed, double size) {
  RowMatrix W(d, d);
  Random(seed, 0, 5).normals({W.data(), static_cast<std::size_t>(W.size())});
  return size * W;
}

TEST(LabelPass, IsTheGradientOfTheDefinition) {
  for (std::uint32_t seed = 0; seed < 6; ++seed) {
    const AttentionTask task =
        generate({.law = Law::next_token, .n = 9, .T = 7, .d = 4, .shortest = 1, .vocabulary = 5}, seed).task;
    for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
      for (const double size : {0.0, 1.0, 30.0}) {
        SCOPED_TRACE(fmt::format("seed {}, {} loss, size {}", seed, name_of(loss), size));
        expect_oracle(task, loss, random_point(4, seed, size), 1e-11);
      }
    }
  }
}

TEST(LabelPass, KeepsItsDigitsWhereSoftmaxSaturates) {
  Threads threads(1);
  int saturated = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const AttentionTask task = generate({.law = Law::next_token, .n = 3, .T = 4, .d = 12, .vocabulary = 8}, seed).task;
    const auto graphs = priority_graphs(task);
    const MarginProblem problem = MarginProblem::graph(task, graphs);
    if (!problem.all_positive() || problem.rows() == 0) continue;
    const MarginSolution svm = solve(problem, {}, threads);
    ASSERT_EQ(svm.status, MarginStatus::optimal);
    ASSERT_TRUE(verify(task, stored(problem, svm, 1e-8)).valid);
    for (const double far : {100.0, 1000.0, 5000.0}) {  // all labels ahead by this much: weights from e^-100 on
      SCOPED_TRACE(fmt::format("seed {}, {} ahead", seed, far));
      expect_oracle(task, Loss::logistic, far * svm.W, 1e-9 * far);
      ++saturated;
    }
  }
  EXPECT_GE(saturated, 15);
}

/// Two tokens with the same vector share the attention, and neither adds to the gradient nor hides what does.
TEST(LabelPass, TwinsOfTheLabelDoNotHideTheOthers) {
  const AttentionTask task({.offsets = Array::own(std::vector<Index>{0, 4}, {2}),
                            .ids = Array::own(std::vector<Index>{0, 1, 2, 3}, {4}),
                            .embeddings = Array::own(std::vector<double>{1, 0, 1, 0, 0, 1, 0.5, 0.5}, {4, 2}),
                            .next = Array::own(std::vector<Index>{0}, {1})});
  RowMatrix W(2, 2);
  W << 2000, 2000, -2000, -2000;  // token 0 and its twin are 4000 and 2000 ahead of the others
  expect_oracle(task, Loss::logistic, W, 1e-11);
}

TEST(LabelPass, NothingButTheLabelHasNoGradient) {
  const AttentionTask task({.offsets = Array::own(std::vector<Index>{0, 2}, {2}),
                            .ids = Array::own(std::vector<Index>{1, 1}, {2}),
                            .embeddings = Array::own(std::vector<double>{1, 0, 0, 1}, {2, 2}),
                            .next = Array::own(std::vector<Index>{1}, {1})});
  Threads threads(1);
  for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
    LossGradient got;
    GradientPass(task, {.loss = loss}, threads).evaluate(RowMatrix::Ones(2, 2), task.head(), {}, got);
    EXPECT_EQ(got.loss, 0);
    EXPECT_TRUE(got.W.is_zero());
  }
}

}  // namespace
}  // namespace attsvm
