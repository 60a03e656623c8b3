#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support.h"

namespace attsvm {
namespace {

/// A random recipe of modest size.
Recipe any_recipe() {
  Recipe recipe{
      .law = *rc::gen::element(Law::random, Law::orthonormal, Law::separable),
      .n = *rc::gen::inRange<Index>(1, 6),
      .T = *rc::gen::inRange<Index>(1, 6),
      .d = *rc::gen::inRange<Index>(6, 9),
      .shortest = 1,
      .pattern = *rc::gen::element(QueryPattern::cross, QueryPattern::self, QueryPattern::prompt, QueryPattern::causal),
      .head = *rc::gen::element(HeadKind::linear, HeadKind::hidden, HeadKind::quadratic)};
  if (recipe.law == Law::separable) recipe.head = HeadKind::linear;
  return recipe;
}

Drawn any_task() { return generate(any_recipe(), *rc::gen::arbitrary<std::uint64_t>()); }

RC_GTEST_PROP(TaskLaws, ShapesAddUp, ()) {
  const AttentionTask task = any_task().task;
  Index total = 0;
  for (Index s = 0; s < task.sequences(); ++s) {
    total += task.length(s);
    RC_ASSERT(task.keys(s).rows() == task.length(s));
    RC_ASSERT(task.length(s) <= task.longest());
  }
  RC_ASSERT(total == task.tokens());
  for (Index i = 0; i < task.queries(); ++i) {
    RC_ASSERT(task.visible(i) >= 1);
    RC_ASSERT(task.visible(i) <= task.length(task.sequence(i)));
    RC_ASSERT(task.query(i).size() == task.query_size());
  }
}

RC_GTEST_PROP(TaskLaws, OptimalTokensFollowAPermutationOfTheTokens, ()) {
  const Index T = *rc::gen::inRange<Index>(1, 7);
  const Drawn drawn = generate({.n = 1, .T = T, .d = 4}, *rc::gen::arbitrary<std::uint64_t>());
  std::vector<Index> order(static_cast<std::size_t>(T));
  std::iota(order.begin(), order.end(), Index{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(*rc::gen::arbitrary<std::uint64_t>()));
  RowMatrix permuted(T, 4);
  for (Index t = 0; t < T; ++t) permuted.row(t) = drawn.task.keys(0).row(order[static_cast<std::size_t>(t)]);
  TaskArrays arrays = drawn.task.arrays();
  arrays.tokens = Array::own(permuted);
  arrays.tokens.shape = {1, T, 4};
  const Index before = optimal_tokens(drawn.task).selection.first(0);
  const Index after = optimal_tokens(AttentionTask(arrays)).selection.first(0);
  RC_ASSERT(order[static_cast<std::size_t>(after)] == before);
}

RC_GTEST_PROP(TaskLaws, ADuplicatedBestTokenIsATie, ()) {
  Drawn drawn = generate({.n = 1, .T = 5, .d = 3}, *rc::gen::arbitrary<std::uint64_t>());
  const Index best = optimal_tokens(drawn.task).selection.first(0);
  const Index copy = (best + *rc::gen::inRange<Index>(1, 5)) % 5;
  RowMatrix tokens = drawn.task.keys(0);
  tokens.row(copy) = tokens.row(best);
  TaskArrays arrays = drawn.task.arrays();
  arrays.tokens = Array::own(tokens);
  arrays.tokens.shape = {1, 5, 3};
  const OptimalTokens optimal = optimal_tokens(AttentionTask(arrays));
  RC_ASSERT(optimal.ties.size() == 1U);
  RC_ASSERT(optimal.ties[0].tokens == (std::vector<Index>{std::min(best, copy), std::max(best, copy)}));
}

RC_GTEST_PROP(TaskLaws, ScalingTokensScalesLinearScores, (double exponent)) {
  const double scale = std::exp2(std::fmod(exponent, 100.0));
  const Drawn drawn = generate({}, *rc::gen::arbitrary<std::uint64_t>());
  RowMatrix tokens(drawn.task.tokens(), drawn.task.value_size());
  for (Index s = 0; s < drawn.task.sequences(); ++s)
    tokens.middleRows(drawn.task.offset(s), drawn.task.length(s)) = scale * drawn.task.values(s);
  TaskArrays arrays = drawn.task.arrays();
  arrays.tokens = Array::own(tokens);
  arrays.tokens.shape = drawn.task.arrays().tokens.shape;
  RC_ASSERT(optimal_tokens(AttentionTask(arrays)).selection == optimal_tokens(drawn.task).selection);
}

RC_GTEST_PROP(TaskLaws, ASingleSelectionIsItsOwnMask, ()) {
  const AttentionTask task = generate({.law = Law::separable}, *rc::gen::arbitrary<std::uint64_t>()).task;
  const Selection& selection = *task.select();
  RC_ASSERT(Selection::from_array(selection.mask(task.longest()), task.visible(), task.longest(), "select") ==
            selection);
}

}  // namespace
}  // namespace attsvm
