#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "audit/head_fields.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array kHeadFields{HeadField{"keys", &HeadArrays::keys},
                                 HeadField{"queries", &HeadArrays::queries},
                                 HeadField{"key_head", &HeadArrays::key_head},
                                 HeadField{"layer", &HeadArrays::layer},
                                 HeadField{"head", &HeadArrays::head},
                                 HeadField{"offsets", &HeadArrays::offsets},
                                 HeadField{"sequence", &HeadArrays::sequence},
                                 HeadField{"position", &HeadArrays::position},
                                 HeadField{"visible", &HeadArrays::visible},
                                 HeadField{"text", &HeadArrays::text},
                                 HeadField{"query_text", &HeadArrays::query_text},
                                 HeadField{"ids", &HeadArrays::ids},
                                 HeadField{"sink", &HeadArrays::sink},
                                 HeadField{"difference", &HeadArrays::difference}};

void require_stack(const Array& array, std::string_view name, std::string_view meaning) {
  if (!array.given()) refuse("{} is missing; a set of heads has keys and queries", name);
  const bool positive = std::all_of(array.shape.begin(), array.shape.end(), [](Index size) { return size > 0; });
  if (array.rank() != 3 || !positive) refuse("{} has shape {}; must be {}", name, shape_text(array.shape), meaning);
  if (array.scalar >= Scalar::boolean) refuse("{} has type {}; must be numbers", name, name_of(array.scalar));
}

void require_length(const Array& array, std::string_view name, Index count, std::string_view of) {
  const Index rank = array.scalar == Scalar::character ? array.rank() - 1 : array.rank();
  if (rank != 1 || array.shape[0] != count)
    refuse("{} has shape {}; must be ({}), one entry per {}", name, shape_text(array.shape), count, of);
}

/// The entries of an index array, or `otherwise` if it is not given. InputError unless low ≤ entry i ≤ high(i).
template <class High>
std::vector<Index> indices_of(const Array& array, std::string_view name, Index count, std::string_view of,
                              std::vector<Index> otherwise, Index low, High high) {
  if (!array.given()) return otherwise;
  require_length(array, name, count, of);
  std::vector<Index> indices = to_indices(array, name);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < low || indices[i] > high(i))
      refuse("{}[{}] = {}; must be from {} to {}", name, i, indices[i], low, high(i));
  }
  return indices;
}

std::vector<Index> counting(Index count) {
  std::vector<Index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<Index> zeros(Index count) { return std::vector<Index>(static_cast<std::size_t>(count), 0); }

/// Part number k of an array in C order, along its first axis.
Array part(const Array& array, Index k) {
  Array one = array;
  one.shape.erase(one.shape.begin());
  one.data += k * one.bytes();
  return one;
}

/// Checks that every number is finite, one part at a time, so that no copy of the whole array is made.
void require_finite_parts(const Array& array, std::string_view name) {
  for (Index k = 0; k < array.shape[0]; ++k) {
    Array one = to_f64(part(array, k), name);
    require_finite(one, fmt::format("{}[{}]", name, k));
  }
}

RowMatrix matrix_of(const Array& array, Index k) {
  const Array one = to_f64(part(array, k));
  return ConstRows(f64_span(one).data(), one.shape[0], one.shape[1]);
}

constexpr auto kNoLimit = [](std::size_t) { return std::numeric_limits<Index>::max(); };

}  // namespace

std::span<const HeadField> internal::head_fields() { return kHeadFields; }

HeadSet::HeadSet(HeadArrays arrays) : contents_(std::make_shared<const Contents>(std::move(arrays))) {}

HeadSet::Contents::Contents(HeadArrays given) : arrays(std::move(given)) {
  take_sizes();
  take_places();
  take_visible();
  take_words();
}

void HeadSet::Contents::take_sizes() {
  require_stack(arrays.keys, "keys", "(g,N,d): one matrix of keys per head, or per group of heads");
  require_stack(arrays.queries, "queries", "(h,q,d): one matrix of queries per head");
  size = arrays.keys.shape[2];
  if (arrays.queries.shape[2] != size)
    refuse("queries has shape {}; its last size must be {}, that of keys", shape_text(arrays.queries.shape), size);
  for (Array* array : {&arrays.keys, &arrays.queries}) *array = to_native(*array);
  require_finite_parts(arrays.keys, "keys");
  require_finite_parts(arrays.queries, "queries");
  const Index heads = arrays.queries.shape[0], groups = arrays.keys.shape[0];
  if (!arrays.key_head.given() && groups != heads)
    refuse("keys has shape {} and queries {}; heads that share keys need key_head", shape_text(arrays.keys.shape),
           shape_text(arrays.queries.shape));
  key_head = indices_of(arrays.key_head, "key_head", heads, "head", counting(heads), 0,
                        [&](std::size_t) { return groups - 1; });
  layer = indices_of(arrays.layer, "layer", heads, "head", zeros(heads), 0, kNoLimit);
  head = indices_of(arrays.head, "head", heads, "head", counting(heads), 0, kNoLimit);
  if (!arrays.difference.given()) return;
  require_length(arrays.difference, "difference", heads, "head");
  const Array numbers = to_f64(arrays.difference, "difference");
  difference.assign(f64_span(numbers).begin(), f64_span(numbers).end());
}

void HeadSet::Contents::take_places() {
  const Index count = arrays.queries.shape[1], tokens = arrays.keys.shape[1];
  offsets = {0, tokens};
  if (arrays.offsets.given()) {
    if (arrays.offsets.rank() != 1 || arrays.offsets.shape[0] < 2)
      refuse("offsets has shape {}; must be (n+1)", shape_text(arrays.offsets.shape));
    offsets = to_indices(arrays.offsets, "offsets");
    if (offsets.front() != 0 || offsets.back() != tokens)
      refuse("offsets runs from {} to {}; must run from 0 to {}, the number of tokens", offsets.front(), offsets.back(),
             tokens);
    for (std::size_t s = 1; s < offsets.size(); ++s) {
      if (offsets[s] <= offsets[s - 1])
        refuse("offsets[{}] = {} after {}; a sequence has at least one token", s, offsets[s], offsets[s - 1]);
    }
  }
  const auto sequences = static_cast<Index>(offsets.size()) - 1;
  if (!arrays.sequence.given() && sequences > 1)
    refuse("sequence is missing; with {} sequences every query must say which it reads", sequences);
  sequence = indices_of(arrays.sequence, "sequence", count, "query", zeros(count), 0,
                        [&](std::size_t) { return sequences - 1; });
  const auto length = [&](std::size_t query) {
    return at(offsets, sequence[query] + 1) - at(offsets, sequence[query]);
  };
  for (std::size_t s = 1; s < offsets.size(); ++s) longest = std::max(longest, offsets[s] - offsets[s - 1]);
  position = indices_of(arrays.position, "position", count, "query", {}, 0,
                        [&](std::size_t query) { return length(query) - 1; });
  sink.assign(static_cast<std::size_t>(tokens), false);
  if (!arrays.sink.given()) {
    for (std::size_t s = 0; s + 1 < offsets.size(); ++s) sink[static_cast<std::size_t>(offsets[s])] = true;
    return;
  }
  require_length(arrays.sink, "sink", tokens, "token");
  if (arrays.sink.scalar != Scalar::boolean) refuse("sink has type {}; must be bool", name_of(arrays.sink.scalar));
  const Array flags = to_native(arrays.sink);
  for (std::size_t t = 0; t < sink.size(); ++t) sink[t] = flags.data[t] != std::byte{0};
}

void HeadSet::Contents::take_visible() {
  const Index heads = arrays.queries.shape[0], count = arrays.queries.shape[1];
  if (!arrays.visible.given()) return;
  if (arrays.visible.scalar != Scalar::boolean) {
    prefix = indices_of(arrays.visible, "visible", count, "query", {}, 1, [&](std::size_t query) {
      return at(offsets, sequence[query] + 1) - at(offsets, sequence[query]);
    });
    return;
  }
  const std::vector<Index> each{count, longest}, per_head{heads, count, longest};
  if (arrays.visible.shape != each && arrays.visible.shape != per_head)
    refuse("visible has shape {}; must be {} or {}, bool, T the longest sequence", shape_text(arrays.visible.shape),
           shape_text(each), shape_text(per_head));
  arrays.visible = to_native(arrays.visible);
}

void HeadSet::Contents::take_words() {
  const auto tokens = arrays.keys.shape[1], count = arrays.queries.shape[1];
  if (arrays.text.given()) {
    require_length(arrays.text, "text", tokens, "token");
    text = to_texts(arrays.text, "text");
  }
  if (arrays.query_text.given()) {
    require_length(arrays.query_text, "query_text", count, "query");
    query_text = to_texts(arrays.query_text, "query_text");
  }
  std::unordered_map<std::string, Index> known;
  if (arrays.ids.given()) {
    words = indices_of(arrays.ids, "ids", tokens, "token", {}, std::numeric_limits<Index>::min(), kNoLimit);
  } else {  // tokens without text are all different
    for (Index t = 0; t < tokens; ++t)
      words.push_back(text.empty() ? t : known.try_emplace(text[static_cast<std::size_t>(t)], t).first->second);
  }
  query_words.assign(static_cast<std::size_t>(count), -1);
  for (std::size_t i = 0; i < query_words.size(); ++i) {
    if (!position.empty()) {
      query_words[i] = at(words, at(offsets, sequence[i]) + position[i]);
    } else if (!query_text.empty()) {
      const auto found = known.find(query_text[i]);
      if (found != known.end()) query_words[i] = found->second;
    }
  }
}

bool HeadSet::any_sink() const {
  return std::find(contents_->sink.begin(), contents_->sink.end(), true) != contents_->sink.end();
}

double HeadSet::difference(Index head) const {
  return contents_->difference.empty() ? std::nan("") : contents_->difference[static_cast<std::size_t>(head)];
}

RowMatrix HeadSet::keys(Index head) const { return matrix_of(contents_->arrays.keys, at(contents_->key_head, head)); }

RowMatrix HeadSet::query_vectors(Index head) const { return matrix_of(contents_->arrays.queries, head); }

bool HeadSet::sees(Index head, Index query, Index token) const {
  const Array& visible = contents_->arrays.visible;
  if (!contents_->prefix.empty()) return token < at(contents_->prefix, query);
  if (!visible.given()) return true;
  const Index row = (visible.rank() == 3 ? head * queries() : 0) + query;
  return visible.data[row * longest() + token] != std::byte{0};
}

std::string HeadSet::text(Index token) const {
  return contents_->text.empty() ? fmt::format("#{}", token) : contents_->text[static_cast<std::size_t>(token)];
}

std::string HeadSet::query_text(Index query) const {
  if (self()) return text(offset(sequence(query)) + position(query));
  return contents_->query_text.empty() ? fmt::format("query {}", query)
                                       : contents_->query_text[static_cast<std::size_t>(query)];
}

}  // namespace attsvm
