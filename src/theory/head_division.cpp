#include "theory/head_division.h"

#include <set>
#include <vector>

namespace attsvm::internal {

HeadDivision division_of(std::span<const Index> selected, Index heads) {
  const std::size_t queries = selected.size() / static_cast<std::size_t>(heads);
  std::set<std::vector<Index>> selections;
  for (std::size_t first = 0; first < selected.size(); first += queries) {
    const auto one = selected.subspan(first, queries);
    selections.emplace(one.begin(), one.end());
  }
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < queries; ++i) {
    std::set<Index> different;
    for (const std::vector<Index>& one : selections) different.insert(one[i]);
    tokens += different.size();
  }
  return {static_cast<Index>(selections.size()), static_cast<double>(tokens) / static_cast<double>(queries)};
}

}  // namespace attsvm::internal
