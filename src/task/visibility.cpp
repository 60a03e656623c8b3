#include <algorithm>
#include <numeric>

#include "attsvm/task.h"

namespace attsvm {

Visibility::Visibility(Index longest) : longest_(longest), tokens_(static_cast<std::size_t>(longest)) {
  std::iota(tokens_.begin(), tokens_.end(), Index{0});
}

void Visibility::add(Index first, Index count) {
  begin_.push_back(first);
  count_.push_back(count);
  total_ += count;
}

void Visibility::add(std::span<const Index> tokens) {
  const auto count = static_cast<Index>(tokens.size());
  if (tokens.back() - tokens.front() == count - 1) return add(tokens.front(), count);
  add(static_cast<Index>(tokens_.size()), count);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

void Visibility::add_as(Index query) {
  add(begin_[static_cast<std::size_t>(query)], count_[static_cast<std::size_t>(query)]);
}

bool Visibility::sees(Index query, Index token) const {
  const auto seen = tokens(query);
  if (!scattered(query)) return token >= seen.front() && token <= seen.back();
  return std::binary_search(seen.begin(), seen.end(), token);
}

}  // namespace attsvm
