#include <algorithm>

#include "attsvm/task.h"
#include "base/refuse.h"
#include "task/task_fields.h"

namespace attsvm {

using namespace internal;

namespace {

std::span<const Index> index_span(const Array& array) {
  return {reinterpret_cast<const Index*>(array.data), static_cast<std::size_t>(array.size())};
}

/// Integers as aligned i64: the array itself where it is that already, because a corpus may fill most of the memory.
Array in_place_indices(const Array& array, std::string_view name) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(array.data) % alignof(Index) == 0;
  if (array.scalar == Scalar::i64 && !array.foreign_endian && aligned) return array;
  return Array::own(to_indices(array, name), array.shape);
}

}  // namespace

void AttentionTask::Contents::take_next_tokens() {
  constexpr std::string_view kParts = "ids, offsets, embeddings, next and optionally vocabulary";
  const auto missing = [&](const Array& array, std::string_view name) {
    if (!array.given()) refuse("{} is missing; a next-token task has {}", name, kParts);
  };
  missing(arrays_.ids, "ids");
  missing(arrays_.offsets, "offsets");
  missing(arrays_.embeddings, "embeddings");
  missing(arrays_.next, "next");
  for (const TaskField& field : task_fields()) {
    const bool belongs = field.member == &TaskArrays::ids || field.member == &TaskArrays::offsets ||
                         field.member == &TaskArrays::embeddings || field.member == &TaskArrays::next ||
                         field.member == &TaskArrays::vocabulary;
    if (!belongs && (arrays_.*field.member).given())
      refuse("{} and ids are both given; a next-token task has {}", field.name, kParts);
  }
  kind_ = AttentionKind::next_token;

  Array &ids = arrays_.ids, &embeddings = arrays_.embeddings, &next = arrays_.next, &vocabulary = arrays_.vocabulary;
  if (embeddings.rank() != 2) refuse("embeddings has shape {}; must be (K,d)", shape_text(embeddings.shape));
  take_real(embeddings, "embeddings");
  query_size_ = embeddings.shape[1];
  const Index K = embeddings.shape[0];

  if (ids.rank() != 1 || ids.size() < 1) refuse("ids has shape {}; must be (N), at least one", shape_text(ids.shape));
  ids = in_place_indices(ids, "ids");
  const auto tokens = index_span(ids);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    if (tokens[t] < 0 || tokens[t] >= K)
      refuse("ids[{}] = {}; must be a row of embeddings, 0 to {}", t, tokens[t], K - 1);
  }
  take_offsets(ids.size());

  if (next.shape != std::vector<Index>{sequences()})
    refuse("next has shape {}; must be ({}) (one entry per sequence)", shape_text(next.shape), sequences());
  next = in_place_indices(next, "next");
  for (Index s = 0; s < sequences(); ++s) {
    const Index label = index_span(next)[static_cast<std::size_t>(s)];
    const auto sequence = tokens.subspan(static_cast<std::size_t>(offset(s)), static_cast<std::size_t>(length(s)));
    if (std::find(sequence.begin(), sequence.end(), label) == sequence.end()) {
      refuse("next[{}] = {}; must be a token of sequence {}, which is ids[{}] to ids[{}]", s, label, s, offset(s),
             offset(s + 1) - 1);
    }
  }

  if (!vocabulary.given()) return;
  words_ = to_texts(vocabulary, "vocabulary");
  if (static_cast<Index>(words_.size()) != K)
    refuse("vocabulary has {} texts; must be {}, one per row of embeddings", words_.size(), K);
  vocabulary = Array::texts(words_);
}

ConstRows AttentionTask::embeddings() const {
  const Array& table = contents_->arrays_.embeddings;
  return {f64_span(table).data(), table.shape[0], table.shape[1]};
}

std::span<const Index> AttentionTask::ids(Index sequence) const {
  return index_span(contents_->arrays_.ids)
      .subspan(static_cast<std::size_t>(offset(sequence)), static_cast<std::size_t>(length(sequence)));
}

Index AttentionTask::next(Index query) const {
  return index_span(contents_->arrays_.next)[static_cast<std::size_t>(query)];
}

std::string AttentionTask::word(Index token) const {
  return contents_->words_.empty() ? fmt::format("#{}", token) : contents_->words_[static_cast<std::size_t>(token)];
}

}  // namespace attsvm
