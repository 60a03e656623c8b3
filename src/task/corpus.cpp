#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "attsvm/generate.h"
#include "base/refuse.h"
#include "task/draw.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::size_t kLongestWord = 64;  // bytes; longer runs of letters are cut, so that the vocabulary stays small

bool is_space(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Letters, digits, _ and ', and all of UTF-8 beyond ASCII.
bool is_of_word(unsigned char c) {
  return c >= 0x80 || c == '_' || c == '\'' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool continues_character(unsigned char c) { return (c & 0xC0U) == 0x80; }

/// Calls take(token) for every token of the text, in order.
template <class Take>
void for_each_token(std::string_view text, TokenKind kind, Take&& take) {
  for (std::size_t first = 0; first < text.size();) {
    std::size_t last = first + 1;
    const auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    if (kind == TokenKind::word) {
      if (is_space(at(first))) {
        first = last;
        continue;
      }
      while (is_of_word(at(first)) && last < text.size() && is_of_word(at(last)) &&
             (last - first < kLongestWord || continues_character(at(last))))
        ++last;
    }
    take(text.substr(first, last - first));
    first = last;
  }
}

/// A token as the vocabulary names it: bytes beyond ASCII are no characters by themselves, and a text ends at its first
/// zero byte.
std::string name_of_token(std::string_view token, TokenKind kind) {
  const auto c = static_cast<unsigned char>(token.front());
  return c == 0 || (kind == TokenKind::byte && c >= 0x80) ? fmt::format("\\x{:02x}", c) : std::string(token);
}

/// Unit Gaussian vectors, one per token.
Array draw_embeddings(const Random& random, Index K, Index d) {
  RowMatrix table(K, d);
  random.normals({table.data(), static_cast<std::size_t>(table.size())});
  for (Index k = 0; k < K; ++k) scale_to_unit(table.row(k).data(), d);
  return Array::own(table);
}

}  // namespace

std::string_view name_of(TokenKind kind) { return kind == TokenKind::byte ? "byte" : "word"; }

AttentionTask corpus_task(std::string_view text, const Corpus& corpus) {
  for (const auto& [name, value] : {std::pair{"T", corpus.T}, {"d", corpus.d}}) {
    if (value < 1) refuse("{} = {}; must be at least 1", name, value);
  }
  const Index stride = corpus.stride == 0 ? corpus.T : corpus.stride;
  if (stride < 1) refuse("stride = {}; must be at least 1", stride);
  std::unordered_map<std::string_view, Index> number;
  std::vector<std::string> words;
  std::vector<std::uint32_t> ids;  // of the whole text; half as large as what the chosen windows get
  if (corpus.tokens == TokenKind::byte) ids.reserve(text.size());
  for_each_token(text, corpus.tokens, [&](std::string_view token) {
    const auto [entry, is_new] = number.emplace(token, static_cast<Index>(words.size()));
    if (is_new) words.push_back(name_of_token(token, corpus.tokens));
    ids.push_back(static_cast<std::uint32_t>(entry->second));
  });

  // Windows whose next token occurs in them. Found first, so that what is kept of them needs no room to grow.
  std::vector<Index> begins, offsets{0}, next, kept;
  const auto total = static_cast<Index>(ids.size());
  for (Index first = 0; first + corpus.T < total; first += stride) {
    const auto begin = ids.begin() + first, end = begin + corpus.T;
    if (std::find(begin, end, *end) != end) begins.push_back(first);
  }
  kept.reserve(begins.size() * static_cast<std::size_t>(corpus.T));
  for (const Index first : begins) {
    const auto begin = ids.begin() + first, end = begin + corpus.T;
    kept.insert(kept.end(), begin, end);
    offsets.push_back(static_cast<Index>(kept.size()));
    next.push_back(*end);
  }
  if (next.empty()) {
    refuse("{} tokens hold no window of {} that the token after it occurs in; try another --T or a --stride of 1",
           total, corpus.T);
  }
  const auto N = static_cast<Index>(kept.size()), n = static_cast<Index>(next.size());
  return AttentionTask({.offsets = Array::own(std::move(offsets), {n + 1}),
                        .ids = Array::own(std::move(kept), {N}),
                        .embeddings = draw_embeddings({corpus.seed, 0, kTokens}, std::ssize(words), corpus.d),
                        .next = Array::own(std::move(next), {n}),
                        .vocabulary = Array::texts(words)});
}

AttentionTask internal::draw_next_token(const Draft& draft) {
  const Recipe& r = draft.recipe;
  const Random ids = draft.random(kIds), labels = draft.random(kSelect);
  std::vector<Index> tokens, next;
  for (Index t = 0; t < draft.offsets.back(); ++t)
    tokens.push_back(
        static_cast<Index>(ids.below(static_cast<std::uint64_t>(r.vocabulary), static_cast<std::uint64_t>(t))));
  for (Index s = 0; s < r.n; ++s) {
    const auto at = labels.below(static_cast<std::uint64_t>(draft.length(s)), static_cast<std::uint64_t>(s));
    next.push_back(tokens[static_cast<std::size_t>(draft.offsets[static_cast<std::size_t>(s)]) + at]);
  }
  return AttentionTask({.offsets = Array::own(draft.offsets, {r.n + 1}),
                        .ids = Array::own(std::move(tokens), {draft.offsets.back()}),
                        .embeddings = draw_embeddings(draft.random(kTokens), r.vocabulary, r.d),
                        .next = Array::own(std::move(next), {r.n})});
}

}  // namespace attsvm
