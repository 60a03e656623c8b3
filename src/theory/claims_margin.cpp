// Claims about the SVMs themselves: when they have solutions, and of which rank.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "attsvm/theory.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

struct Counted {
  Index selections = 0, refused = 0;
  std::vector<Index> example;  // the first selection without a W
};

/// Solves the Att-SVM of every selection of the task.
Counted count_separable(const AttentionTask& task, Threads& threads) {
  std::vector<MarginProblem> problems;
  std::vector<Index> tokens = first_selection(task);
  do {
    problems.push_back(MarginProblem::attention(task, Selection::single(tokens)));
  } while (next_selection(task, tokens));
  const auto solutions = solve_verified(problems, Norm::frobenius(), threads);
  Counted counted{.selections = static_cast<Index>(problems.size())};
  for (std::size_t k = 0; k < problems.size(); ++k) {
    if (solutions[k].status == MarginStatus::optimal) continue;
    if (!is_settled(solutions[k].status)) throw std::logic_error("an SVM was not solved");
    if (counted.refused++ == 0) counted.example = problems[k].selection().firsts();
  }
  return counted;
}

}  // namespace

ClaimResult test_separability(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  // As small as the condition allows: d = T − 1 and dz = n, or d = n(T−1) for prompts.
  constexpr std::array kSizes{
      Recipe{.n = 3, .T = 4, .d = 3, .dz = 3}, Recipe{.n = 2, .T = 4, .d = 6, .pattern = QueryPattern::prompt},
      Recipe{.n = 2, .T = 5, .d = 4, .dz = 2}, Recipe{.n = 3, .T = 3, .d = 6, .pattern = QueryPattern::prompt},
      Recipe{.n = 4, .T = 3, .d = 2, .dz = 4}, Recipe{.n = 3, .T = 4, .d = 9, .pattern = QueryPattern::prompt},
  };
  struct Below {  // tasks one below the condition
    std::string label;
    Index selections = 0, refused = 0;
    auto numbers() { return std::tie(selections, refused); }
  };
  std::array below{Below{"share without a W, cross, d = T-2"}, Below{"share without a W, cross, dz = n-1"},
                   Below{"share without a W, prompt, d = n(T-1)-1"}};
  const auto count_below = [&](std::size_t which, const Recipe& recipe, Index instance) {
    const Counted counted = count_separable(draw_task(recipe, settings.seed, instance), threads);
    below[which].selections += counted.selections;
    below[which].refused += counted.refused;
  };
  Tally tally(claim, settings);
  Index selections = 0;
  tally.continues(below, selections);
  tally.for_batches(0, [&](Index first, Index count) {
    for (Index k = first; k < first + count; ++k) {
      const Recipe& recipe = kSizes[static_cast<std::size_t>(k) % kSizes.size()];
      const AttentionTask task = draw_task(recipe, settings.seed, k);
      const Counted counted = count_separable(task, threads);
      selections += counted.selections;
      tally.add(task, counted.refused == 0,
                static_cast<double>(counted.refused) / static_cast<double>(counted.selections),
                fmt::format("{} of {} selections have no W, the first one keeps tokens {}", counted.refused,
                            counted.selections, fmt::join(counted.example, " ")));
      Recipe smaller = recipe;
      --smaller.d;
      if (recipe.pattern == QueryPattern::prompt) {
        count_below(2, smaller, k);
      } else {
        count_below(0, smaller, k);
        smaller = recipe;
        --smaller.dz;
        count_below(1, smaller, k);
      }
    }
  });
  tally.figure("selections solved", static_cast<double>(selections));
  for (const Below& one : below) tally.share(one.label, one.refused, one.selections);
  return std::move(tally).result();
}

ClaimResult test_rank(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr std::array kSizes{
      Recipe{.n = 5, .T = 5, .d = 10},  Recipe{.n = 10, .T = 5, .d = 5},          Recipe{.n = 10, .T = 5, .d = 20},
      Recipe{.n = 5, .T = 15, .d = 20}, Recipe{.n = 8, .T = 4, .d = 12, .dz = 4}, Recipe{.n = 6, .T = 8, .d = 10},
  };
  constexpr Index kMostDraws = 4;  // per task wanted
  Tally tally(claim, settings);
  Mean frobenius, nuclear;
  Index draws = 0, without = 0, certified = 0;
  tally.continues(frobenius, nuclear, draws, without, certified);
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    std::vector<AttentionTask> tasks;
    std::vector<Index> bounds;
    for (Index k = first; k < first + count; ++k) {
      const Recipe& recipe = kSizes[static_cast<std::size_t>(k) % kSizes.size()];
      tasks.push_back(draw_task(recipe, settings.seed, k));
      bounds.push_back(std::min({recipe.n, recipe.d, recipe.dz > 0 ? recipe.dz : recipe.d}));
    }
    const auto problems = attention_problems(tasks, optimal_of(tasks));
    const auto fro = solve_verified(problems, Norm::frobenius(), threads);
    const auto nuc = solve_verified(problems, Norm::nuclear(), threads);
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      ++draws;
      without += fro[k].status == MarginStatus::infeasible ? 1 : 0;
      if (fro[k].status != MarginStatus::optimal || nuc[k].status != MarginStatus::optimal) continue;
      const Index rank = numerical_rank(fro[k].W), rank_nuc = nuc[k].rank.rank;
      frobenius.add(static_cast<double>(rank) / static_cast<double>(bounds[k]));
      nuclear.add(static_cast<double>(rank_nuc) / static_cast<double>(bounds[k]));
      certified += nuc[k].rank.certified ? 1 : 0;
      const Index over = std::max(rank, rank_nuc) - bounds[k];
      tally.add(tasks[k], over <= 0, static_cast<double>(over),
                fmt::format("ranks {} (Frobenius) and {} (nuclear), bound {}", rank, rank_nuc, bounds[k]));
    }
  });
  tally.figure("mean rank / bound, Frobenius", frobenius.value());
  tally.figure("mean rank / bound, nuclear", nuclear.value());
  tally.share("share of nuclear ranks certified", certified, nuclear.count());
  tally.share("share of draws without a W", without, draws);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
