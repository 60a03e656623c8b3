#include "theory/capacity_draws.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random.h"

namespace attsvm::internal {
namespace {

constexpr std::uint32_t kTokenScores = 0x5c0e0300, kHeadSelections = 0x5c0e0400;  // plus the head

}  // namespace

Index query_size_of(const Recipe& recipe) {
  if (recipe.pattern == QueryPattern::prompt) return 1;
  return recipe.pattern == QueryPattern::cross && recipe.dz > 0 ? recipe.dz : recipe.d;
}

AlwaysSeparable always_separable(const Recipe& recipe) {
  const Index n = recipe.n, T = recipe.T, d = recipe.d, dz = query_size_of(recipe);
  if (d < 2) return {false, "with d = 1, unit tokens are equal or opposite"};
  const auto compared = [](bool holds) { return holds ? "<=" : ">"; };
  if (recipe.pattern == QueryPattern::self) return {n <= d, fmt::format("n = {} {} {} = d", n, compared(n <= d), d)};
  const Index most = dz * std::max(Index{1}, d / (T - 1));
  return {n <= most, fmt::format("n = {} {} {} = dz * max(1, floor(d/(T-1)))", n, compared(n <= most), most)};
}

std::vector<AttentionTask> draw_selections(const Recipe& recipe, const Draws& draws, Threads& threads) {
  std::vector<AttentionTask> tasks = draw_tasks(recipe, draws, threads);
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    std::vector<double> scores(static_cast<std::size_t>(tasks[k].tokens()));
    Random(draws.seed, draws.instance(k), kTokenScores).normals(scores);
    tasks[k] = with_scores(tasks[k], std::move(scores));
  }
  return tasks;
}

std::vector<Index> selection_of_head(const AttentionTask& task, std::uint64_t seed, Index instance, Index head) {
  if (head == 0) return optimal_tokens(task).selection.firsts();
  const Random random(seed, static_cast<std::uint32_t>(instance), kHeadSelections + static_cast<std::uint32_t>(head));
  std::vector<Index> selected;
  for (Index i = 0; i < task.queries(); ++i) {
    selected.push_back(
        static_cast<Index>(random.below(static_cast<std::uint64_t>(task.visible(i)), static_cast<std::uint64_t>(i))));
  }
  return selected;
}

}  // namespace attsvm::internal
