#include "theory/capacity_search.h"

#include <algorithm>
#include <map>

#include "base/limits.h"
#include "theory/row_dimension.h"

namespace attsvm::internal {
namespace {

constexpr Index kPredictedSizes = 24;  // most sizes of chances_around()

Recipe of_size(const Recipe& recipe, Index d) {
  Recipe other = recipe;
  other.d = d;
  return other;
}

/// The predicted chance; NaN if it was stopped.
double predicted_chance(const Recipe& recipe, std::uint64_t seed, const std::function<bool()>& stop, Threads& threads) {
  if (always_separable(recipe).holds) return 1;
  const std::vector<double> law = dimension_law(recipe.T, recipe.d, seed, threads, stop);
  return law.empty() ? kNaN : separable_chance(law, recipe.n, recipe.d * query_size_of(recipe));
}

/// Sizes from a third below the recipe's d and those of the search to a third above them.
std::vector<Index> sizes_around(const Recipe& recipe, const std::optional<CapacitySearch>& search) {
  Index least = recipe.d, most = recipe.d;
  if (search) {
    for (const Index d : {search->low, search->high, search->predicted}) {
      if (d > 0) least = std::min(least, d), most = std::max(most, d);
    }
  }
  least = std::max<Index>(1, least - least / 3);
  most += most / 3 + 1;
  const Index step = std::max<Index>(1, (most - least + kPredictedSizes - 2) / (kPredictedSizes - 1));
  std::vector<Index> sizes;
  for (Index d = least; d <= most; d += step) sizes.push_back(d);
  return sizes;
}

/// The smallest d in (low, high] of which `holds` is true, if it is true of `high` and stays true once it is.
Index first_of(Index low, Index high, const std::function<bool(Index)>& holds) {
  while (high - low > 1) {
    const Index middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

/// The same from a guess, near which the steps are small.
Index first_near(Index guess, Index low, Index high, const std::function<bool(Index)>& holds) {
  Index step = 1;
  if (guess >= high) guess = high - 1;
  if (guess <= low) return first_of(low, high, holds);
  if (holds(guess)) {
    high = guess;
    for (; high - step > low; step *= 2) {
      if (!holds(high - step)) {
        low = high - step;
        break;
      }
      high -= step;
    }
  } else {
    low = guess;
    for (; low + step < high; step *= 2) {
      if (holds(low + step)) {
        high = low + step;
        break;
      }
      low += step;
    }
  }
  return first_of(low, high, holds);
}

}  // namespace

CapacitySearch smallest_size(Recipe recipe, double wanted, Index most, std::uint64_t seed, const CountSeparable& count,
                             const std::function<bool()>& stop, Threads& threads) {
  const auto sized = [&](Index d) { return of_size(recipe, d); };
  // Beyond this d theory says that every selection is separable.
  const Index certain = first_of(1, std::max(Index{2}, recipe.n * (recipe.T - 1)),
                                 [&](Index d) { return always_separable(sized(d)).holds; });
  CapacitySearch search{.wanted = wanted, .low = 1, .high = certain};
  const auto expected = [&](Index d) { return !(predicted_chance(sized(d), seed, stop, threads) < wanted); };
  const Index top = std::min(certain, most);
  search.predicted = top == certain || expected(top) ? first_of(0, top, expected) : 0;
  if (stop()) search.predicted = 0;
  if (search.predicted == 0) return search;

  std::map<Index, CapacityPoint> known;
  bool stopped = false;
  const auto at = [&](Index d) -> const CapacityPoint& {
    const auto [entry, added] = known.try_emplace(d);
    CapacityPoint& point = entry->second;
    if (!added) return point;
    point.d = d;
    point.always = always_separable(sized(d)).holds;
    if (point.always || stopped || d > most) return point;
    if (const auto share = count(sized(d))) {
      point.separable = *share;
    } else {
      stopped = true;
    }
    return point;
  };
  const auto enough = [&](Index d) { return at(d).always || at(d).separable.low >= wanted; };
  const auto not_too_small = [&](Index d) { return at(d).always || at(d).separable.high >= wanted; };
  const Index high = first_near(search.predicted, 0, certain, enough);
  const Index low = stopped ? 1 : first_near(high - 1, 0, high, not_too_small);
  search.complete = !stopped && high <= most;
  for (const auto& [d, point] : known) {
    if (point.always || point.separable.of == 0) continue;
    search.points.push_back(point);
    if (point.separable.low >= wanted) search.high = std::min(search.high, d);
    if (point.separable.high < wanted) search.low = std::max(search.low, d + 1);
  }
  if (search.complete) {
    search.high = high;
    search.low = low;
  }
  return search;
}

std::vector<PredictedChance> chances_around(const Recipe& recipe, const std::optional<CapacitySearch>& search,
                                            std::uint64_t seed, const std::function<bool()>& stop, Threads& threads) {
  std::vector<PredictedChance> chances;
  for (const Index d : sizes_around(recipe, search)) {
    chances.push_back({d, predicted_chance(of_size(recipe, d), seed, stop, threads)});
    if (stop()) return {};
  }
  return chances;
}

}  // namespace attsvm::internal
