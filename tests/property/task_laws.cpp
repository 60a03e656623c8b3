#include <algorithm>
#include <numeric>

#include "property/draw.h"

namespace attsvm {
namespace {

using test::any_engine;
using test::any_index;
using test::any_number;
using test::any_of;
using test::any_seed;

/// A random recipe of modest size.
Recipe any_recipe() {
  Recipe recipe{
      .law = any_of({Law::random, Law::orthonormal, Law::separable}),
      .n = any_index(1, 6),
      .T = any_index(1, 6),
      .d = any_index(6, 9),
      .shortest = 1,
      .pattern = any_of({QueryPattern::cross, QueryPattern::self, QueryPattern::prompt, QueryPattern::causal}),
      .head = any_of({HeadKind::linear, HeadKind::hidden, HeadKind::quadratic})};
  if (recipe.law == Law::separable) recipe.head = HeadKind::linear;
  return recipe;
}

Drawn any_task() { return generate(any_recipe(), any_seed()); }

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

RC_GTEST_PROP(TaskLaws, AMaskHidesTokensAndNothingElse, ()) {
  const AttentionTask task = any_task().task;
  std::vector<std::vector<Index>> seen;
  for (Index i = 0; i < task.queries(); ++i) {
    seen.push_back(test::any_indices(0, task.length(task.sequence(i))));
    if (seen.back().empty()) seen.back().push_back(any_index(0, task.length(task.sequence(i))));
  }
  const Selection shown = Selection::sets(seen);
  TaskArrays arrays = task.arrays();
  arrays.select = {};
  arrays.visible = shown.mask(task.longest());
  const AttentionTask masked(arrays);
  const bool scored = task.head().kind != HeadKind::none;
  const Selection best = scored ? optimal_tokens(masked).selection : shown;
  for (Index i = 0; i < task.queries(); ++i) {
    const auto kept = shown.kept(i), tokens = masked.seen(i);
    RC_ASSERT(std::equal(kept.begin(), kept.end(), tokens.begin(), tokens.end()));
    RC_ASSERT(masked.visible().sees(i, best.first(i)));
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      const auto row = static_cast<Index>(k);
      RC_ASSERT(masked.seen_keys(i).row(row) == task.keys(task.sequence(i)).row(tokens[k]));
      RC_ASSERT(masked.seen_values(i).row(row) == task.values(task.sequence(i)).row(tokens[k]));
    }
  }
}

RC_GTEST_PROP(TaskLaws, OptimalTokensFollowAPermutationOfTheTokens, ()) {
  const Index T = any_index(1, 7);
  const Drawn drawn = generate({.n = 1, .T = T, .d = 4}, any_seed());
  std::vector<Index> order(static_cast<std::size_t>(T));
  std::iota(order.begin(), order.end(), Index{0});
  std::shuffle(order.begin(), order.end(), any_engine());
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
  Drawn drawn = generate({.n = 1, .T = 5, .d = 3}, any_seed());
  const Index best = optimal_tokens(drawn.task).selection.first(0);
  const Index copy = (best + any_index(1, 5)) % 5;
  RowMatrix tokens = drawn.task.keys(0);
  tokens.row(copy) = tokens.row(best);
  TaskArrays arrays = drawn.task.arrays();
  arrays.tokens = Array::own(tokens);
  arrays.tokens.shape = {1, 5, 3};
  const OptimalTokens optimal = optimal_tokens(AttentionTask(arrays));
  RC_ASSERT(optimal.ties.size() == 1U);
  RC_ASSERT(optimal.ties[0].tokens == (std::vector<Index>{std::min(best, copy), std::max(best, copy)}));
}

RC_GTEST_PROP(TaskLaws, ScalingTokensScalesLinearScores, ()) {
  const double scale = std::exp2(std::fmod(any_number(), 100.0));
  const Drawn drawn = generate({}, any_seed());
  RowMatrix tokens(drawn.task.tokens(), drawn.task.value_size());
  for (Index s = 0; s < drawn.task.sequences(); ++s)
    tokens.middleRows(drawn.task.offset(s), drawn.task.length(s)) = scale * drawn.task.values(s);
  TaskArrays arrays = drawn.task.arrays();
  arrays.tokens = Array::own(tokens);
  arrays.tokens.shape = drawn.task.arrays().tokens.shape;
  RC_ASSERT(optimal_tokens(AttentionTask(arrays)).selection == optimal_tokens(drawn.task).selection);
}

RC_GTEST_PROP(TaskLaws, ASingleSelectionIsItsOwnMask, ()) {
  const AttentionTask task = generate({.law = Law::separable}, any_seed()).task;
  const Selection& selection = *task.select();
  RC_ASSERT(Selection::from_array(selection.mask(task.longest()), task.visible(), task.longest(), "select") ==
            selection);
}

}  // namespace
}  // namespace attsvm
