// Stacks of layers: gradients against an oracle of its own in MPFR, the steps of runs, what their heads read.
#include "attsvm/stack.h"

#include <array>
#include <cmath>

#include "support.h"
#include "train/optimizers.h"
#include "train/stack_pass.h"
#include "train/usual_records.h"
#include "train_oracle.h"

namespace attsvm {
namespace {

using test::expect_refusal;

using Deep = test::BasicReal<10'000>;  // sums cancel down to 1e-2900

/// The entries of all W, V, A and B, in the order of the stack.
template <class T>
using Entries = std::array<std::vector<T>, 4>;

/// mean ℓ(y f) as it is defined, for any type of number.
template <class T>
T loss_of(const AttentionTask& task, const Stack& stack, const Entries<T>& entries) {
  const auto& [W, V, A, B] = entries;
  using Matrix = std::vector<std::vector<T>>;
  const Index d = task.value_size();
  const auto at = [](auto& list, Index k) -> auto& { return list[static_cast<std::size_t>(k)]; };
  T total(0);
  for (Index i = 0; i < task.queries(); ++i) {
    const ConstRows tokens = task.seen_values(i);
    const Index count = tokens.rows();
    Matrix X;
    for (Index t = 0; t < count; ++t) {
      X.emplace_back();
      for (Index j = 0; j < d; ++j) X.back().push_back(T(tokens(t, j)));
    }
    for (Index layer = 0; layer < stack.layers; ++layer) {
      Matrix next = X;
      for (Index head = 0; head < stack.heads; ++head) {
        const Index first = (layer * stack.heads + head) * d * d;
        for (Index q = 0; q < count; ++q) {
          const Index seen = stack.causal ? q + 1 : count;
          std::vector<T> weights, mixed(static_cast<std::size_t>(d), T(0));
          T sum(0);
          for (Index t = 0; t < seen; ++t) {
            T logit(0);
            for (Index j = 0; j < d; ++j) {
              for (Index k = 0; k < d; ++k)
                logit = logit + at(at(X, t), j) * at(W, first + j * d + k) * at(at(X, q), k);
            }
            weights.push_back(exp(logit));
            sum = sum + weights.back();
          }
          for (Index t = 0; t < seen; ++t) {
            for (Index j = 0; j < d; ++j) at(mixed, j) = at(mixed, j) + at(weights, t) / sum * at(at(X, t), j);
          }
          for (Index j = 0; j < d; ++j) {
            for (Index k = 0; k < d; ++k)
              at(at(next, q), k) = at(at(next, q), k) + at(mixed, j) * at(V, first + j * d + k);
          }
        }
      }
      X = next;
      const Index units = stack.A.empty() ? 0 : stack.A.front().rows();
      for (Index q = 0; q < count; ++q) {
        for (Index unit = 0; unit < units; ++unit) {
          const Index first = (layer * units + unit) * d;
          T hidden(0);
          for (Index j = 0; j < d; ++j) hidden = hidden + at(A, first + j) * at(at(X, q), j);
          for (Index j = 0; j < d && hidden > T(0); ++j)
            at(at(next, q), j) = at(at(next, q), j) + hidden * at(B, first + j);
        }
      }
      X = next;
    }
    T f(0);
    for (Index j = 0; j < d; ++j) f = f + T(task.head().v[j]) * at(X.back(), j);
    total = total + log(T(1) + exp(T(0) - T(task.label(i)) * f));
  }
  return total / T(static_cast<double>(task.queries()));
}

/// The gradient by all W and, if wanted, then by all V, A and B, entry by entry.
template <class T>
std::vector<T> oracle(const AttentionTask& task, const Stack& stack, bool values) {
  Entries<test::Dual<T>> entries;
  for (std::size_t kind = 0; const auto* list : {&stack.W, &stack.V, &stack.A, &stack.B}) {
    for (const RowMatrix& one : *list) {
      for (Index k = 0; k < one.size(); ++k) entries.at(kind).emplace_back(one.data()[k]);
    }
    ++kind;
  }
  std::vector<T> gradient;
  for (auto& list : entries) {
    if (&list != &entries[0] && !values) continue;
    for (auto& entry : list) {
      entry.slope = T(1);
      gradient.push_back(loss_of(task, stack, entries).slope);
      entry.slope = T(0);
    }
  }
  return gradient;
}

AttentionTask draw(Index n, Index T, Index d, std::uint64_t seed) {
  return generate({.n = n, .T = T, .d = d, .pattern = QueryPattern::prompt}, seed).task;
}

/// A random stack whose W are `scale` times as large as a random start.
Stack draw_stack(const AttentionTask& task, Index layers, Index heads, bool causal, double scale, Index mlp = 0) {
  Stack stack = starting_stack(
      task,
      {.layers = layers, .heads = heads, .mlp = mlp, .causal = causal, .training = {.init = Init::random, .seed = 7}});
  for (RowMatrix& W : stack.W) W *= scale;
  return stack;
}

StackGradient gradient_of(const AttentionTask& task, const Stack& stack, int threads = 1) {
  Threads pool(threads);
  StackGradient out;
  stack_gradient(task, stack, task.head(), Loss::logistic, true, pool, out);
  return out;
}

struct Shape {
  Index layers, heads, mlp;
};

TEST(Stack, GradientIsThatOfTheOracle) {
  for (const bool causal : {true, false}) {
    for (const Shape& shape : {Shape{1, 2, 0}, {2, 1, 0}, {3, 2, 0}, {1, 1, 2}, {3, 2, 4}}) {
      const AttentionTask task = draw(2, 4, 3, 5);
      const Stack stack = draw_stack(task, shape.layers, shape.heads, causal, 3, shape.mlp);
      const auto expected = oracle<double>(task, stack, true);
      const StackGradient got = gradient_of(task, stack);
      std::size_t k = 0;
      for (const auto* list : got.lists()) {
        for (const ScaledMatrix& one : *list) {
          for (Index j = 0; j < one.direction.size(); ++j)
            EXPECT_NEAR(one.direction.data()[j] * std::exp(one.log_scale), expected[k++], 1e-14);
        }
      }
      EXPECT_EQ(k, expected.size());
    }
  }
}

/// Compares the sizes and directions of all matrices with those of the oracle in MPFR, where gradients are far below
/// the smallest double.
void expect_saturated_gradient(const AttentionTask& task, const Stack& stack, bool values) {
  const auto expected = oracle<Deep>(task, stack, values);
  const StackGradient got = gradient_of(task, stack);
  double smallest = 0;
  auto entry = expected.begin();
  for (const auto* list : got.lists()) {
    if (list != &got.W && !values) continue;
    for (const ScaledMatrix& one : *list) {
      const std::vector<Deep> entries(entry, entry + one.direction.size());
      entry += one.direction.size();
      Deep square(0);
      for (const Deep& x : entries) square = square + x * x;
      const Deep norm = sqrt(square);
      const double log_norm = log(norm).to_double();
      smallest = std::min(smallest, log_norm / std::log(10.0));
      EXPECT_NEAR(one.log_norm(), log_norm, 1e-11 * std::max(1.0, std::abs(log_norm)));
      const RowMatrix unit = one.direction / one.direction.norm();
      for (std::size_t j = 0; j < entries.size(); ++j)
        EXPECT_NEAR(unit.data()[j], (entries[j] / norm).to_double(), 1e-10) << stack.causal << " " << j;
    }
  }
  EXPECT_EQ(entry, expected.end());
  EXPECT_LE(smallest, -400) << "no gradient is far below the smallest double";
  EXPECT_GE(smallest, -2900) << "the oracle has too few digits";
}

TEST(Stack, SaturatedGradientsAreThoseOfTheOracleInMpfr) {
  const AttentionTask task = draw(1, 4, 3, 11);
  for (const bool causal : {true, false}) expect_saturated_gradient(task, draw_stack(task, 2, 2, causal, 2400), false);
}

/// The exponents of rows pass the MLPs, which have gradients of their own.
TEST(Stack, SaturatedGradientsPassMlpsAsInMpfr) {
  const AttentionTask task = draw(1, 4, 3, 11);
  for (const bool causal : {true, false})
    expect_saturated_gradient(task, draw_stack(task, 2, 1, causal, 12'000, 3), true);
}

/// Two tokens, each a sequence of its own; the derivative of the second one's loss is e^-1200.
AttentionTask two_tokens(double second_label) {
  return AttentionTask({.tokens = Array::own(std::vector{1., 2., -600., -600.}, {2, 1, 2}),
                        .labels = Array::own(std::vector{1., second_label}, {2}),
                        .head = Array::own(std::vector{1., 1.}, {2})});
}

/// An MLP that cancels a token lets no derivative through. Such a zero has no size, and drowns nothing that is small.
TEST(Stack, TokensThatAnMlpCancelsPassNothing) {
  const AttentionTask task = two_tokens(-1);
  Stack stack = draw_stack(task, 1, 1, true, 1, 2);
  stack.V[0].setZero();
  stack.A[0].setIdentity();
  stack.B[0] = -RowMatrix::Identity(2, 2);
  const StackGradient got = gradient_of(task, stack);
  EXPECT_TRUE(got.W[0].is_zero());
  EXPECT_NEAR(got.V[0].log_norm(), std::log(600) - 1200, 1e-9) << "of the second query alone";
}

/// The first token moves only a unit that writes nothing, so that A has the gradient of the second alone.
TEST(Stack, UnitsThatWriteNothingPassNothing) {
  const AttentionTask task = two_tokens(1);
  Stack stack = draw_stack(task, 1, 1, true, 1, 2);
  stack.V[0].setZero();
  stack.A[0] << 1, 1, -1, -1;
  stack.B[0] << 0, 0, 1, 1;
  EXPECT_NEAR(gradient_of(task, stack).A[0].log_norm(), std::log(600 * std::sqrt(2.0)) - 1200, 1e-9);
}

TEST(Stack, GradientDoesNotDependOnThreads) {
  const AttentionTask task = draw(40, 5, 4, 2);
  const Stack stack = draw_stack(task, 2, 2, true, 100, 5);
  const StackGradient one = gradient_of(task, stack, 1), many = gradient_of(task, stack, 3);
  for (std::size_t list = 0; list < one.lists().size(); ++list) {
    for (std::size_t k = 0; k < one.lists()[list]->size(); ++k) {
      const ScaledMatrix &left = (*one.lists()[list])[k], &right = (*many.lists()[list])[k];
      EXPECT_EQ(left.direction, right.direction);
      EXPECT_EQ(left.log_scale, right.log_scale);
    }
  }
}

TEST(Stack, StepsAreThoseOfTheDefinitions) {
  const AttentionTask task = draw(3, 4, 3, 1);
  Threads threads(1);
  StackSettings settings{
      .heads = 2, .mlp = 5, .train_values = true, .training = {.step = 0.3, .steps = 1, .init = Init::random}};
  const Stack start = starting_stack(task, settings);
  const StackGradient at = gradient_of(task, start);
  double square = 0;
  for (const auto* list : at.lists()) {
    for (const ScaledMatrix& one : *list) square += std::exp(2 * one.log_norm());
  }
  const Stack each = train_stack(task, settings, threads).last.stack;
  settings.one_norm = true;
  const Stack all = train_stack(task, settings, threads).last.stack;
  for (std::size_t k = 0; k < start.W.size(); ++k) {
    const RowMatrix g = at.W[k].direction * std::exp(at.W[k].log_scale), h = at.V[k].direction;
    EXPECT_LE((each.W[k] - (start.W[k] - 0.3 * g / g.norm())).norm(), 1e-14);
    EXPECT_LE((each.V[k] - (start.V[k] - 0.3 * h / h.norm())).norm(), 1e-14);
    EXPECT_LE((all.W[k] - (start.W[k] - 0.3 * g / std::sqrt(square))).norm(), 1e-14);
  }
  for (std::size_t k = 0; k < start.B.size(); ++k) {
    const RowMatrix g = at.A[k].direction * std::exp(at.A[k].log_scale),
                    h = at.B[k].direction * std::exp(at.B[k].log_scale);
    EXPECT_LE((each.A[k] - (start.A[k] - 0.3 * g / g.norm())).norm(), 1e-14);
    EXPECT_LE((all.A[k] - (start.A[k] - 0.3 * g / std::sqrt(square))).norm(), 1e-14);
    EXPECT_LE((all.B[k] - (start.B[k] - 0.3 * h / std::sqrt(square))).norm(), 1e-14);
  }
}

/// In a saturated stack only live positions matter: another selection at one that is not leaves the output as it is.
TEST(Stack, LivePositionsAreThoseThatTheOutputDependsOn) {
  const AttentionTask task = draw(4, 5, 3, 3);
  Threads threads(1);
  const Stack stack = draw_stack(task, 2, 1, true, 1e5);
  const auto live = layer_tasks(task, stack, Askers::live, threads);
  const auto all = layer_tasks(task, stack, Askers::all, threads);
  ASSERT_EQ(live.size(), 2U);
  EXPECT_EQ(live[1].queries(), 4);
  EXPECT_EQ(all[0].queries(), 20);
  EXPECT_LE(live[0].queries(), 8);
  const std::vector<Index> chosen = attention_map(live[1], stack.W[1], threads).selected;
  const std::vector<Index> asking = to_indices(live[0].arrays().query_token, "query_token");
  for (Index i = 0; i < 4; ++i) {
    std::vector<Index> found;
    for (Index q = 0; q < live[0].queries(); ++q) {
      if (live[0].sequence(q) == i) found.push_back(asking[static_cast<std::size_t>(q)]);
    }
    std::vector<Index> expected{chosen[static_cast<std::size_t>(i)]};
    if (expected[0] != 4) expected.push_back(4);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(live[1].keys(i).rows(), 5);
  }
}

TEST(Stack, RefusesWhatItCannotRead) {
  Threads threads(1);
  const AttentionTask cross = generate({.n = 2, .T = 3, .d = 3}, 1).task, prompt = draw(2, 3, 3, 1);
  expect_refusal([&] { train_stack(cross, {}, threads); }, {"queries", "tokens ask"});
  expect_refusal([&] { train_stack(prompt, {.layers = 0}, threads); }, {"layers = 0", "at least 1"});
  expect_refusal([&] { train_stack(prompt, {.mlp = -1}, threads); }, {"mlp = -1", "at least 0"});
  expect_refusal([&] { train_stack(prompt, {.training = {.joint = true}}, threads); }, {"joint"});
  expect_refusal([&] { train_stack(prompt, {.heads = 2, .values = StackValues::identity}, threads); },
                 {"heads = 2", "at random"});
  for (const TrainSettings& unused : {TrainSettings{.heads = 2}, {.heads = 2, .shared_norm = true}})
    expect_refusal([&] { train_stack(prompt, {.training = unused}, threads); }, {"heads", "no meaning for a stack"});
  expect_refusal([&] { train_stack(prompt, {.training = {.selector = Selector::dirichlet}}, threads); }, {"selector"});
  expect_refusal([&] { train_stack(prompt, {.training = {.entropy = 1}}, threads); }, {"entropy"});
  expect_refusal([&] { train_stack(prompt, {.training = {.temperature = {2, 1}}}, threads); }, {"temperature"});
  for (const char* optimizer : {"muon", "steepest:spec", "steepest:nuc", "steepest:schatten:3"}) {
    StackSettings settings{.one_norm = true, .training = {.steps = 1}};
    ASSERT_EQ(internal::set_optimizer(optimizer, settings.training), "");
    expect_refusal([&] { train_stack(prompt, settings, threads); }, {"one-norm", "singular values"});
    settings.one_norm = false;
    EXPECT_EQ(train_stack(prompt, settings, threads).last.step, 1) << optimizer;
  }
}

/// Fixed values are the same at all records, so only the last one has them.
TEST(Stack, RecordsHoldFixedValuesOnce) {
  Threads threads(1);
  const AttentionTask task = draw(2, 3, 3, 1);
  for (const bool trained : {false, true}) {
    const StackRun run = train_stack(
        task, {.mlp = 2, .train_values = trained, .training = {.steps = 4, .record = {.at = {0, 2, 4}}}}, threads);
    ASSERT_EQ(run.records.size(), 3U);
    for (std::size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(run.records[r].stack.V.empty(), !trained && r < 2);
      EXPECT_EQ(run.records[r].stack.A.empty(), !trained && r < 2);
    }
    EXPECT_EQ(run.records.back().stack.V, run.last.stack.V);
    EXPECT_EQ(run.records.back().stack.B, run.last.stack.B);
    if (!trained)
      expect_refusal([&] { layer_tasks(task, run.records[0].stack, Askers::live, threads); }, {"0 matrices V"});
  }
}

TEST(Stack, UsualRecordsFitIntoMemory) {
  const AttentionTask task = draw(2, 3, 64, 1);
  StackSettings settings{.layers = 64, .heads = 16, .training = {.steps = 100'000}};
  EXPECT_LE(internal::usual_records(task, settings).at.size(), 8U);
  settings.train_values = true;
  EXPECT_LE(internal::usual_records(task, settings).at.size(), 4U);
  settings = {.mlp = 1'000'000, .train_values = true, .training = settings.training};
  EXPECT_LE(internal::usual_records(task, settings).at.size(), 4U);
  EXPECT_EQ(internal::usual_records(task, {.training = settings.training}), RecordPlan::spread(100'000));
}

}  // namespace
}  // namespace attsvm
