// Claims about which sizes separate random selections.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "theory/capacity_draws.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/row_dimension.h"

namespace attsvm::internal {
namespace {

constexpr Index kSelections = 100;  // per size
constexpr double kThreeErrors = 0.15;

constexpr std::array<Index, 5> kTokens{2, 3, 5, 7, 9};

/// Sizes with 36 unknowns; n is set by the claim.
std::vector<Recipe> count_sizes() {
  std::vector<Recipe> sizes;
  for (const Index T : kTokens) {
    sizes.push_back({.T = T, .d = 6});
    sizes.push_back({.T = T, .d = 6, .pattern = QueryPattern::self});
    sizes.push_back({.T = T, .d = 36, .pattern = QueryPattern::prompt});
  }
  return sizes;
}

std::string words_of_sizes(const Recipe& recipe) {
  return fmt::format("{}, n = {}, T = {}, d = {}", name_of(recipe.pattern), recipe.n, recipe.T, recipe.d);
}

/// Compares the share of separable selections with an expected one, size by size. `expect` sets n and returns it.
ClaimResult test_shares(const Claim& claim, const ClaimSettings& settings, Threads& threads,
                        const std::function<double(Recipe&)>& expect) {
  const std::vector<Recipe> sizes = count_sizes();
  Tally tally(claim, settings);
  std::array<Mean, kTokens.size()> by_tokens;
  tally.continues(by_tokens);
  tally.for_each_draw([&](Index k) {
    Recipe recipe = sizes[static_cast<std::size_t>(k) % sizes.size()];
    const double expected = expect(recipe);
    const Index round = k / std::ssize(sizes);
    const std::vector<AttentionTask> tasks =
        draw_selections(recipe, {settings.seed, round * kSelections, kSelections}, threads);
    Index separable = 0;
    for (const MarginSolution& one :
         solve_verified(attention_problems(tasks, optimal_of(tasks)), Norm::frobenius(), threads))
      separable += one.status == MarginStatus::optimal ? 1 : 0;
    const double share = static_cast<double>(separable) / kSelections, off = std::abs(share - expected);
    by_tokens.at(static_cast<std::size_t>(std::find(kTokens.begin(), kTokens.end(), recipe.T) - kTokens.begin()))
        .add(share);
    tally.add(tasks.front(), off <= kThreeErrors, off,
              fmt::format("{}: {} of {} selections are separable, expected {:.0f}", words_of_sizes(recipe), separable,
                          kSelections, expected * kSelections));
  });
  for (std::size_t s = 0; s < kTokens.size(); ++s) {
    if (by_tokens[s].count() > 0)
      tally.figure(fmt::format("share separable, T = {}", kTokens[s]), by_tokens[s].value());
  }
  return std::move(tally).result();
}

}  // namespace

ClaimResult test_capacity_always(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr std::array kAtTheBound{
      Recipe{.n = 6, .T = 3, .d = 4, .dz = 3},
      Recipe{.n = 4, .T = 12, .d = 2, .dz = 4},
      Recipe{.n = 8, .T = 2, .d = 4, .dz = 2},
      Recipe{.n = 3, .T = 20, .d = 3, .dz = 3},
      Recipe{.n = 12, .T = 4, .d = 7, .dz = 6},
      Recipe{.n = 3, .T = 3, .d = 6, .pattern = QueryPattern::prompt},
      Recipe{.n = 4, .T = 2, .d = 4, .pattern = QueryPattern::prompt},
      Recipe{.n = 5, .T = 9, .d = 5, .pattern = QueryPattern::self},
  };
  constexpr Index kHeads = 8;
  Tally tally(claim, settings);
  const auto refused = [&](const AttentionTask& task, Index instance) {
    std::vector<MarginProblem> problems;
    for (Index head = 0; head < kHeads; ++head)
      problems.push_back(
          MarginProblem::attention(task, Selection::single(selection_of_head(task, settings.seed, instance, head))));
    Index without = 0;
    for (const MarginSolution& one : solve_verified(problems, Norm::frobenius(), threads))
      without += one.status == MarginStatus::optimal ? 0 : 1;
    return without;
  };
  Index beyond = 0, beyond_refused = 0;
  tally.continues(beyond, beyond_refused);
  tally.for_batches(0, [&](Index first, Index count) {
    for (Index k = first; k < first + count; ++k) {
      Recipe recipe = kAtTheBound[static_cast<std::size_t>(k) % kAtTheBound.size()];
      const AttentionTask task = draw_selections(recipe, {settings.seed, k, 1}, threads).front();
      const Index without = refused(task, k);
      tally.add(task, without == 0, static_cast<double>(without) / kHeads,
                fmt::format("{}: {} of {} selections have no W", words_of_sizes(recipe), without, kHeads));
      recipe.n *= 3;
      beyond_refused += refused(draw_selections(recipe, {settings.seed, k, 1}, threads).front(), k);
      beyond += kHeads;
    }
  });
  tally.share("share without a W, three times as many queries", beyond_refused, beyond);
  return std::move(tally).result();
}

ClaimResult test_capacity_count(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_shares(claim, settings, threads, [](Recipe& recipe) {
    recipe.n = 2 * recipe.d * query_size_of(recipe) / (recipe.T - 1);
    return 0.5;
  });
}

ClaimResult test_capacity_law(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_shares(claim, settings, threads, [&](Recipe& recipe) {
    const std::vector<double> law = dimension_law(recipe.T, recipe.d, settings.seed, threads);
    const Index unknowns = recipe.d * query_size_of(recipe);
    recipe.n = static_cast<Index>(std::lround(static_cast<double>(unknowns) / mean_dimension(law)));
    return separable_chance(law, recipe.n, unknowns);
  });
}

}  // namespace attsvm::internal
