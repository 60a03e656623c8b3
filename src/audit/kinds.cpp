#include "audit/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/refuse.h"

namespace attsvm {

namespace {

constexpr std::array<std::string_view, 4> kChoiceKinds{"offset", "constant", "same word", "induction"};
constexpr std::array<std::string_view, 7> kTokenKinds{"sink",      "self",      "previous", "next",
                                                      "same word", "induction", "other"};

}  // namespace

std::string_view name_of(ChoiceKind kind) { return kChoiceKinds[static_cast<std::size_t>(kind)]; }

namespace internal {
namespace {

/// The place of a name in a list of kinds.
std::size_t place_of(std::string_view name, std::span<const std::string_view> kinds) {
  const auto found = std::find(kinds.begin(), kinds.end(), name);
  if (found == kinds.end()) refuse("unknown kind '{}'", name);
  return static_cast<std::size_t>(found - kinds.begin());
}

/// The most frequent key, the smallest where several are.
template <class Key>
std::pair<Key, Index> most_frequent(const std::map<Key, Index>& counts) {
  const auto best =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == counts.end() ? std::pair<Key, Index>{} : std::pair<Key, Index>{best->first, best->second};
}

bool is_same_word(const HeadSet& heads, Index query, Index token) {
  const Index begin = heads.offset(heads.sequence(query));
  return heads.query_word(query) >= 0 && heads.word(begin + token) == heads.query_word(query) &&
         !(heads.self() && heads.position(query) == token);
}

bool is_induction(const HeadSet& heads, Index query, Index token) {
  return heads.self() && token > 0 && is_same_word(heads, query, token - 1);
}

}  // namespace

std::vector<KindShare> kinds_of(const HeadView& view) {
  const HeadSet& heads = view.heads();
  std::map<Index, Index> offsets, positions, words;
  std::map<Index, Index> example;  // of each word
  Index same = 0, induction = 0;
  for (const Choice& choice : view.choices()) {
    const Index token = heads.offset(heads.sequence(choice.query)) + choice.first;
    if (heads.self()) ++offsets[choice.first - heads.position(choice.query)];
    ++positions[choice.first];
    ++words[heads.word(token)];
    example.try_emplace(heads.word(token), token);
    same += is_same_word(heads, choice.query, choice.first) ? 1 : 0;
    induction += is_induction(heads, choice.query, choice.first) ? 1 : 0;
  }
  const auto count = static_cast<double>(view.choices().size());
  if (view.choices().empty()) return {};
  const auto share = [&](Index hits) { return static_cast<double>(hits) / count; };
  std::vector<KindShare> kinds;
  if (heads.self()) {
    const auto [offset, hits] = most_frequent(offsets);
    kinds.push_back({ChoiceKind::offset, share(hits), fmt::format("offset {:+}", offset)});
  }
  const auto [position, there] = most_frequent(positions);
  const auto [word, times] = most_frequent(words);
  kinds.push_back(there >= times ? KindShare{ChoiceKind::constant, share(there), fmt::format("position {}", position)}
                                 : KindShare{ChoiceKind::constant, share(times),
                                             fmt::format("«{}»", heads.text(example.at(word)))});
  kinds.push_back({ChoiceKind::word, share(same), "same word"});
  if (heads.self()) kinds.push_back({ChoiceKind::induction, share(induction), "induction"});
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return kinds;
}

ChoiceKind choice_kind(std::string_view name) { return static_cast<ChoiceKind>(place_of(name, kChoiceKinds)); }

std::string_view token_kind(std::string_view name) { return kTokenKinds[place_of(name, kTokenKinds)]; }

std::string_view kind_of_token(const HeadSet& heads, Index query, Index token) {
  if (heads.sink(heads.offset(heads.sequence(query)) + token)) return "sink";
  if (heads.self()) {
    const Index offset = token - heads.position(query);
    if (offset == 0) return "self";
    if (offset == -1) return "previous";
    if (offset == 1) return "next";
  }
  if (is_same_word(heads, query, token)) return "same word";
  return is_induction(heads, query, token) ? "induction" : "other";
}

}  // namespace internal
}  // namespace attsvm
