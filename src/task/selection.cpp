#include <algorithm>

#include "attsvm/task.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

namespace {

/// "0 to 7", or the first few where there are gaps.
std::string words_of(std::span<const Index> seen) {
  constexpr std::size_t kShown = 8;
  if (seen.back() - seen.front() + 1 == static_cast<Index>(seen.size()))
    return fmt::format("{} to {}", seen.front(), seen.back());
  return fmt::format("{}{}", fmt::join(seen.first(std::min(kShown, seen.size())), ", "),
                     seen.size() > kShown ? ", ..." : "");
}

}  // namespace

void Selection::append(std::vector<Index> tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  if (tokens.empty()) refuse("select[{}] keeps no token; must keep at least one", queries());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  begin_.push_back(static_cast<Index>(tokens_.size()));
}

Selection Selection::single(std::span<const Index> tokens) {
  Selection selection;
  for (const Index token : tokens) selection.append({token});
  return selection;
}

Selection Selection::sets(const std::vector<std::vector<Index>>& tokens) {
  Selection selection;
  for (const auto& set : tokens) selection.append(set);
  return selection;
}

Selection Selection::from_array(const Array& array, const Visibility& visible, Index longest, std::string_view name) {
  const auto q = visible.queries();
  const bool mask = array.scalar == Scalar::boolean;
  if (array.shape != (mask ? std::vector<Index>{q, longest} : std::vector<Index>{q})) {
    refuse("{} has type {} and shape {}; must be ({}) integers or ({},{}) bool", name, name_of(array.scalar),
           shape_text(array.shape), q, q, longest);
  }
  Selection selection;
  if (!mask) {
    const auto tokens = to_indices(array, name);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto seen = visible.tokens(static_cast<Index>(i));
      if (!visible.sees(static_cast<Index>(i), tokens[i]))
        refuse("{}[{}] = {}; must be a visible token, {}", name, i, tokens[i], words_of(seen));
      selection.append({tokens[i]});
    }
    return selection;
  }
  const Array flags = to_f64(array);
  const auto numbers = f64_span(flags);
  const auto width = static_cast<std::size_t>(array.shape[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(q); ++i) {
    std::vector<Index> kept;
    for (std::size_t t = 0; t < width; ++t) {
      if (numbers[i * width + t] == 0) continue;
      if (!visible.sees(static_cast<Index>(i), static_cast<Index>(t))) {
        refuse("{}[{},{}] = True; query {} sees only tokens {}", name, i, t, i,
               words_of(visible.tokens(static_cast<Index>(i))));
      }
      kept.push_back(static_cast<Index>(t));
    }
    if (kept.empty()) refuse("{}[{}] keeps no token; must keep at least one", name, i);
    selection.append(std::move(kept));
  }
  return selection;
}

std::span<const Index> Selection::kept(Index query) const {
  const auto begin = static_cast<std::size_t>(begin_[static_cast<std::size_t>(query)]);
  const auto end = static_cast<std::size_t>(begin_[static_cast<std::size_t>(query) + 1]);
  return std::span(tokens_).subspan(begin, end - begin);
}

std::vector<Index> Selection::firsts() const {
  std::vector<Index> tokens;
  for (Index i = 0; i < queries(); ++i) tokens.push_back(first(i));
  return tokens;
}

bool Selection::keeps(Index query, Index token) const {
  const auto set = kept(query);
  return std::binary_search(set.begin(), set.end(), token);
}

Array Selection::mask(Index longest) const {
  std::vector<bool> flags(static_cast<std::size_t>(queries() * longest), false);
  for (Index i = 0; i < queries(); ++i) {
    for (const Index t : kept(i)) flags[static_cast<std::size_t>(i * longest + t)] = true;
  }
  return Array::own(flags, {queries(), longest});
}

}  // namespace attsvm
