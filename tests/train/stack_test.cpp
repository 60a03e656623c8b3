// Stacks of layers: gradients against an oracle of its own in MPFR, the steps of runs, what their heads read.
#include "attsvm/stack.h"

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

/// mean ℓ(y f) as it is defined, for any type of number; W and V are entry by entry, in the order of the stack.
template <class T>
T loss_of(const AttentionTask& task, const Stack& stack, const std::vector<T>& W, const std::vector<T>& V) {
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
    }
    T f(0);
    for (Index j = 0; j < d; ++j) f = f + T(task.head().v[j]) * at(X.back(), j);
    total = total + log(T(1) + exp(T(0) - T(task.label(i)) * f));
  }
  return total / T(static_cast<double>(task.queries()));
}

/// The gradient by all W and, if wanted, then by all V, entry by entry.
template <class T>
std::vector<T> oracle(const AttentionTask& task, const Stack& stack, bool values) {
  std::vector<test::Dual<T>> W, V;
  for (const auto& [from, to] : {std::pair{&stack.W, &W}, {&stack.V, &V}}) {
    for (const RowMatrix& one : *from) {
      for (Index k = 0; k < one.size(); ++k) to->emplace_back(one.data()[k]);
    }
  }
  std::vector<T> gradient;
  for (auto* list : {&W, &V}) {
    if (list == &V && !values) continue;
    for (auto& entry : *list) {
      entry.slope = T(1);
      gradient.push_back(loss_of(task, stack, W, V).slope);
      entry.slope = T(0);
    }
  }
  return gradient;
}

AttentionTask draw(Index n, Index T, Index d, std::uint64_t seed) {
  return generate({.n = n, .T = T, .d = d, .pattern = QueryPattern::prompt}, seed).task;
}

/// A random stack whose W are `scale` times as large as a random start.
Stack draw_stack(const AttentionTask& task, Index layers, Index heads, bool causal, double scale) {
  Stack stack = starting_stack(
      task, {.layers = layers, .heads = heads, .causal = causal, .training = {.init = Init::random, .seed = 7}});
  for (RowMatrix& W : stack.W) W *= scale;
  return stack;
}

StackGradient gradient_of(const AttentionTask& task, const Stack& stack, int threads = 1) {
  Threads pool(threads);
  StackGradient out;
  stack_gradient(task, stack, task.head(), Loss::logistic, true, pool, out);
  return out;
}

TEST(Stack, GradientIsThatOfTheOracle) {
  for (const bool causal : {true, false}) {
    for (const auto& [layers, heads] : {std::pair{1, 2}, {2, 1}, {3, 2}}) {
      const AttentionTask task = draw(2, 4, 3, 5);
      const Stack stack = draw_stack(task, layers, heads, causal, 3);
      const auto expected = oracle<double>(task, stack, true);
      const StackGradient got = gradient_of(task, stack);
      std::size_t k = 0;
      for (const auto* list : {&got.W, &got.V}) {
        for (const ScaledMatrix& one : *list) {
          for (Index j = 0; j < 9; ++j)
            EXPECT_NEAR(one.direction.data()[j] * std::exp(one.log_scale), expected[k++], 1e-14);
        }
      }
      EXPECT_EQ(k, expected.size());
    }
  }
}

/// Every W of every layer, direction and size, where gradients are far below the smallest double.
TEST(Stack, SaturatedGradientsAreThoseOfTheOracleInMpfr) {
  for (const bool causal : {true, false}) {
    const AttentionTask task = draw(1, 4, 3, 11);
    const Stack stack = draw_stack(task, 2, 2, causal, 2400);
    const auto expected = oracle<Deep>(task, stack, false);
    const StackGradient got = gradient_of(task, stack);
    double smallest = 0;
    for (std::size_t k = 0; k < got.W.size(); ++k) {
      Deep square(0);
      for (std::size_t j = 0; j < 9; ++j) square = square + expected[9 * k + j] * expected[9 * k + j];
      const Deep norm = sqrt(square);
      const double log_norm = log(norm).to_double();
      smallest = std::min(smallest, log_norm / std::log(10.0));
      EXPECT_NEAR(got.W[k].log_norm(), log_norm, 1e-11 * std::abs(log_norm));
      const RowMatrix unit = got.W[k].direction / got.W[k].direction.norm();
      for (std::size_t j = 0; j < 9; ++j)
        EXPECT_NEAR(unit.data()[j], (expected[9 * k + j] / norm).to_double(), 1e-10) << causal << " " << k;
    }
    EXPECT_LE(smallest, -400) << "no gradient is far below the smallest double";
    EXPECT_GE(smallest, -2900) << "the oracle has too few digits";
  }
}

TEST(Stack, GradientDoesNotDependOnThreads) {
  const AttentionTask task = draw(40, 5, 4, 2);
  const Stack stack = draw_stack(task, 2, 2, true, 100);
  const StackGradient one = gradient_of(task, stack, 1), many = gradient_of(task, stack, 3);
  for (std::size_t k = 0; k < one.W.size(); ++k) {
    EXPECT_EQ(one.W[k].direction, many.W[k].direction);
    EXPECT_EQ(one.W[k].log_scale, many.W[k].log_scale);
  }
}

TEST(Stack, StepsAreThoseOfTheDefinitions) {
  const AttentionTask task = draw(3, 4, 3, 1);
  Threads threads(1);
  StackSettings settings{.heads = 2, .train_values = true, .training = {.step = 0.3, .steps = 1, .init = Init::random}};
  const Stack start = starting_stack(task, settings);
  const StackGradient at = gradient_of(task, start);
  double square = 0;
  for (const auto* list : {&at.W, &at.V}) {
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
    const StackRun run =
        train_stack(task, {.train_values = trained, .training = {.steps = 4, .record = {.at = {0, 2, 4}}}}, threads);
    ASSERT_EQ(run.records.size(), 3U);
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(run.records[r].stack.V.empty(), !trained && r < 2);
    EXPECT_EQ(run.records.back().stack.V, run.last.stack.V);
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
  EXPECT_EQ(internal::usual_records(task, {.training = settings.training}), RecordPlan::spread(100'000));
}

}  // namespace
}  // namespace attsvm
