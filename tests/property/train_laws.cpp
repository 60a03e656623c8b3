// Laws of training: symmetries of the task are symmetries of the run.

#include <cmath>

#include "base/random.h"
#include "linear_algebra.h"
#include "property/draw.h"
#include "train/gradient.h"

namespace attsvm {
namespace {

using test::any_index;
using test::any_of;
using test::any_seed;

Recipe any_recipe() {
  return {.n = any_index(1, 5),
          .T = any_index(2, 6),
          .d = any_index(1, 5),
          .pattern = any_of({QueryPattern::cross, QueryPattern::self, QueryPattern::prompt, QueryPattern::causal}),
          .head = any_of({HeadKind::linear, HeadKind::hidden, HeadKind::quadratic})};
}

RowMatrix any_matrix(Index rows, Index cols, double scale) {
  const Random random(any_seed(), 0, 0);
  RowMatrix matrix(rows, cols);
  random.normals({matrix.data(), static_cast<std::size_t>(matrix.size())});
  return scale * matrix;
}

double any_scale() { return any_of({0.1, 1.0, 30.0, 3000.0}); }

LossGradient evaluate(const AttentionTask& task, const RowMatrix& W, const PassSettings& settings = {}) {
  Threads threads(1);
  LossGradient at;
  GradientPass(task, settings, threads).evaluate(W, task.head(), {}, at);
  return at;
}

/// Compares two gradients: their directions, and their sizes.
void assert_same(const ScaledMatrix& a, const ScaledMatrix& b, double tolerance) {
  RC_ASSERT(a.is_zero() == b.is_zero());
  if (a.is_zero()) return;
  RC_ASSERT(std::abs(a.log_norm() - b.log_norm()) <= tolerance * (1 + std::abs(a.log_norm())));
  RC_ASSERT((a.direction / a.direction.norm() - b.direction / b.direction.norm()).norm() <= tolerance);
}

RowMatrix tokens_of(const AttentionTask& task) {
  return ConstRows(f64_span(task.arrays().tokens).data(), task.tokens(), task.value_size());
}

RC_GTEST_PROP(TrainLaws, PromptAndWeightsTakeTheSameSteps, ()) {
  Recipe recipe = any_recipe();
  recipe.pattern = QueryPattern::prompt;
  recipe.head = HeadKind::linear;
  const AttentionTask prompt = generate(recipe, any_seed()).task;
  const RowMatrix u = any_matrix(any_index(1, 4), 1, 1);
  RC_PRE(u.norm() > 0.1);
  TaskArrays arrays = prompt.arrays();
  const RowMatrix queries = u.transpose().replicate(prompt.queries(), 1);
  arrays.queries = Array::own(queries);
  const AttentionTask cross(arrays);
  Threads threads(1);
  const Index steps = 20;
  const TrainedRun p =
      train(prompt, {.param = Parametrization::p, .optimizer = Optimizer::gd, .step = 1, .steps = steps}, threads);
  const TrainedRun W = train(cross, {.optimizer = Optimizer::gd, .step = 1 / u.squaredNorm(), .steps = steps}, threads);
  RC_ASSERT((W.W * u - p.W).norm() <= 1e-11 * (1 + p.norm));
}

RC_GTEST_PROP(TrainLaws, RotatedTokensGiveRotatedGradients, ()) {
  Recipe recipe = any_recipe();
  recipe.pattern = any_of({QueryPattern::cross, QueryPattern::prompt});
  const AttentionTask task = generate(recipe, any_seed()).task;
  const Index d = task.key_size();
  const RowMatrix R = test::orthonormal(any_matrix(d, d, 1));
  TaskArrays arrays = task.arrays();
  const RowMatrix keys = tokens_of(task) * R;
  arrays.keys = Array::own(std::vector<double>(keys.data(), keys.data() + keys.size()), arrays.tokens.shape);
  const AttentionTask rotated(arrays);
  const RowMatrix W = any_matrix(d, task.query_size(), any_of({0.1, 1.0, 10.0}));
  const LossGradient plain = evaluate(task, W), turned = evaluate(rotated, R.transpose() * W);
  RC_ASSERT(std::abs(plain.loss - turned.loss) <= 1e-11 * (1 + std::abs(plain.loss)));
  ScaledMatrix back = turned.W;
  back.direction = R * back.direction;
  RC_PRE(plain.W.is_zero() || plain.W.log_norm() > -30);
  assert_same(plain.W, back, 1e-9);
}

RC_GTEST_PROP(TrainLaws, TheOrderOfTokensAndQueriesDoesNotMatter, ()) {
  Recipe recipe = any_recipe();
  recipe.pattern = QueryPattern::cross;
  // Slopes of nonlinear heads have rounding errors, and under saturation those may be all that is left.
  const double scale = recipe.head == HeadKind::linear ? any_scale() : 1;
  const AttentionTask task = generate(recipe, any_seed()).task;
  const Index n = task.sequences(), T = task.longest(), d = task.key_size();
  TaskArrays arrays = task.arrays();
  RowMatrix tokens(n * T, d), queries(n, task.query_size());
  std::vector<double> labels;
  for (Index i = 0; i < n; ++i) {  // reverses sequences and tokens
    queries.row(i) = task.query(n - 1 - i).transpose();
    labels.push_back(task.label(n - 1 - i));
    for (Index t = 0; t < T; ++t) tokens.row(i * T + t) = task.keys(n - 1 - i).row(T - 1 - t);
  }
  arrays.tokens = Array::own(std::vector<double>(tokens.data(), tokens.data() + tokens.size()), {n, T, d});
  arrays.queries = Array::own(queries);
  arrays.labels = Array::own(labels, {n});
  const RowMatrix W = any_matrix(d, task.query_size(), scale);
  const LossGradient one = evaluate(task, W), other = evaluate(AttentionTask(arrays), W);
  assert_same(one.W, other.W, 1e-10);
  RC_ASSERT(std::abs(one.loss - other.loss) <= 1e-13 * (1 + std::abs(one.loss)));
}

RC_GTEST_PROP(TrainLaws, JointTrainingAtAFixedHeadIsPlainTraining, ()) {
  const AttentionTask task = generate(any_recipe(), any_seed()).task;
  const auto arithmetic = any_of({Arithmetic::exact, Arithmetic::plain});
  const auto param = any_of({Parametrization::W, Parametrization::KQ});
  Threads threads(1);
  // Exact runs with a fixed head may use vector lanes, which round differently; normalized steps amplify that with
  // time.
  const bool plain = arithmetic == Arithmetic::plain;
  const Index steps = plain ? 30 : 3;
  const TrainedRun fixed = train(task, {.param = param, .steps = steps, .arithmetic = arithmetic}, threads);
  const TrainedRun joint = train(
      task, {.param = param, .joint = true, .steps = steps, .head_epsilon = 1e300, .arithmetic = arithmetic}, threads);
  RC_ASSERT(joint.head.v == fixed.head.v);
  if (fixed.stop == TrainStop::zero_gradient) return;
  RC_ASSERT((joint.W - fixed.W).norm() <= (plain ? 0 : 1e-12 * (1 + fixed.norm)));
}

RC_GTEST_PROP(TrainLaws, PlainAndExactAgreeBeforeSaturation, ()) {
  const AttentionTask task = generate(any_recipe(), any_seed()).task;
  const auto loss = any_of({Loss::logistic, Loss::exponential, Loss::linear});
  const RowMatrix W = any_matrix(task.key_size(), task.query_size(), 1);
  const PassSettings exact{.loss = loss, .head_gradient = true};
  const PassSettings plain{.loss = loss, .arithmetic = Arithmetic::plain, .head_gradient = true};
  const LossGradient a = evaluate(task, W, exact), b = evaluate(task, W, plain);
  const auto value = [](const ScaledMatrix& m) { return RowMatrix(m.direction * std::exp(m.log_scale)); };
  RC_ASSERT((value(a.W) - value(b.W)).norm() <= 1e-13);
  RC_ASSERT((value(a.v) - value(b.v)).norm() <= 1e-13);
  RC_ASSERT(std::abs(a.loss - b.loss) <= 1e-14 * (1 + std::abs(a.loss)));
}

}  // namespace
}  // namespace attsvm
