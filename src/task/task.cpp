#include "attsvm/task.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>

#include "base/refuse.h"
#include "task/task_fields.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array kFields{TaskField{"tokens", &TaskArrays::tokens},
                             TaskField{"offsets", &TaskArrays::offsets},
                             TaskField{"keys", &TaskArrays::keys},
                             TaskField{"queries", &TaskArrays::queries},
                             TaskField{"query_token", &TaskArrays::query_token},
                             TaskField{"sequence", &TaskArrays::sequence},
                             TaskField{"visible", &TaskArrays::visible},
                             TaskField{"bias", &TaskArrays::bias},
                             TaskField{"labels", &TaskArrays::labels},
                             TaskField{"head", &TaskArrays::head},
                             TaskField{"head_hidden", &TaskArrays::head_hidden},
                             TaskField{"head_quadratic", &TaskArrays::head_quadratic},
                             TaskField{"select", &TaskArrays::select},
                             TaskField{"ids", &TaskArrays::ids},
                             TaskField{"embeddings", &TaskArrays::embeddings},
                             TaskField{"next", &TaskArrays::next},
                             TaskField{"vocabulary", &TaskArrays::vocabulary}};

constexpr double kOne = 1.0;  // the query vector of prompt attention

void require_shape(const Array& array, std::string_view name, const std::vector<Index>& shape,
                   std::string_view meaning) {
  if (array.shape != shape) {
    refuse("{} has shape {}; must be {} ({})", name, shape_text(array.shape), shape_text(shape), meaning);
  }
}

/// Converts an index array of `count` entries to i64 and returns it. InputError unless low ≤ entry i ≤ high(i).
template <class High>
std::vector<Index> take_indices(Array& array, std::string_view name, Index count, Index low, High high,
                                std::string_view meaning) {
  require_shape(array, name, {count}, "one entry per query");
  std::vector<Index> indices = to_indices(array, name);
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const Index top = high(i);
    if (indices[i] < low || indices[i] > top) {
      refuse("{}[{}] = {}; must be {}, {} to {}", name, i, indices[i], meaning, low, top);
    }
  }
  array = Array::own(indices, {count});
  return indices;
}

void require_own_rows(const AttentionTask& task) {
  if (task.next_token()) throw std::logic_error("the tokens of a next-token task are rows of its embeddings");
}

}  // namespace

std::span<const TaskField> internal::task_fields() { return kFields; }

void internal::take_real(Array& array, std::string_view name) {
  for (const Index extent : array.shape) {
    if (extent < 1) refuse("{} has shape {}; every size must be at least 1", name, shape_text(array.shape));
  }
  array = to_f64(array, name);
  require_finite(array, name);
}

std::string_view name_of(AttentionKind kind) {
  switch (kind) {
    case AttentionKind::prompt:
      return "prompt";
    case AttentionKind::cross:
      return "cross";
    case AttentionKind::self:
      return "self";
    case AttentionKind::next_token:
      return "next-token";
  }
  throw std::logic_error("unknown attention kind");
}

AttentionTask::Contents::Contents(TaskArrays arrays) : arrays_(std::move(arrays)) {
  for (const TaskField& field : kFields) {
    if ((arrays_.*field.member).scalar == Scalar::character && field.member != &TaskArrays::vocabulary)
      refuse("{} is text; must be numbers", field.name);
  }
  if (arrays_.ids.given() || arrays_.embeddings.given() || arrays_.next.given() || arrays_.vocabulary.given()) {
    take_next_tokens();
    return;
  }
  take_tokens();
  take_queries();
  take_visible();
  take_bias();
  take_labels();
  take_head();
  if (arrays_.select.given()) {
    select_ = Selection::from_array(arrays_.select, visible_, longest_, "select");
    arrays_.select = arrays_.select.rank() == 1 ? Array::own(to_indices(arrays_.select, "select"), {queries()})
                                                : select_->mask(longest_);
  }
}

/// Where sequences begin and end among `tokens` tokens.
void AttentionTask::Contents::take_offsets(Index tokens) {
  Array& offsets = arrays_.offsets;
  if (offsets.rank() != 1 || offsets.shape[0] < 2) {
    refuse("offsets has shape {}; must be (n+1) with n at least 1", shape_text(offsets.shape));
  }
  offsets_ = to_indices(offsets, "offsets");
  if (offsets_.front() != 0) {
    Index left = tokens;  // counted down, because sums of any numbers could overflow
    const bool fit = std::all_of(offsets_.begin(), offsets_.end(), [&](Index length) {
      const bool fits = length > 0 && length <= left;
      if (fits) left -= length;
      return fits;
    });
    const bool lengths = fit && left == 0;
    refuse("offsets[0] = {}; must be 0{}", offsets_.front(),
           lengths
               ? fmt::format(" (these look like lengths; offsets are where sequences begin and end: 0, {}, ..., {})",
                             offsets_[0], tokens)
               : "");
  }
  for (std::size_t s = 1; s < offsets_.size(); ++s) {
    if (offsets_[s] <= offsets_[s - 1]) {
      refuse("offsets[{}] = {}; must be larger than offsets[{}] = {} (no sequence may be empty)", s, offsets_[s], s - 1,
             offsets_[s - 1]);
    }
  }
  if (offsets_.back() != tokens) {
    refuse("offsets[{}] = {}; the last one must be the number of tokens, {}", offsets_.size() - 1, offsets_.back(),
           tokens);
  }
  offsets = Array::own(offsets_, {static_cast<Index>(offsets_.size())});
  for (Index s = 0; s < sequences(); ++s) longest_ = std::max(longest_, length(s));
}

void AttentionTask::Contents::take_tokens() {
  Array& tokens = arrays_.tokens;
  if (!tokens.given()) refuse("tokens is missing; every task needs it");
  const Index rank = arrays_.offsets.given() ? 2 : 3;
  if (tokens.rank() != rank) {
    refuse("tokens has shape {}; must be (n,T,d), or (N,d) together with offsets", shape_text(tokens.shape));
  }
  take_real(tokens, "tokens");
  if (rank == 3) {
    offsets_.resize(static_cast<std::size_t>(tokens.shape[0]) + 1);
    for (std::size_t s = 0; s < offsets_.size(); ++s) offsets_[s] = static_cast<Index>(s) * tokens.shape[1];
    longest_ = tokens.shape[1];
  } else {
    take_offsets(tokens.shape[0]);
  }
  if (arrays_.keys.given()) {
    auto shape = tokens.shape;
    if (arrays_.keys.rank() == rank) shape.back() = arrays_.keys.shape.back();
    require_shape(arrays_.keys, "keys", shape, "as tokens; only the last size may differ");
    take_real(arrays_.keys, "keys");
  }
}

void AttentionTask::Contents::take_queries() {
  Array& queries = arrays_.queries;
  Array& query_token = arrays_.query_token;
  if (queries.given() && query_token.given()) refuse("queries and query_token are both given; must be one or neither");
  Index q = sequences();
  if (queries.given()) {
    if (queries.rank() != 2) refuse("queries has shape {}; must be (q,dz)", shape_text(queries.shape));
    take_real(queries, "queries");
    kind_ = AttentionKind::cross;
    q = queries.shape[0];
    query_size_ = queries.shape[1];
  } else if (query_token.given()) {
    if (query_token.rank() != 1 || query_token.size() < 1) {
      refuse("query_token has shape {}; must be (q), at least one", shape_text(query_token.shape));
    }
    kind_ = AttentionKind::self;
    q = query_token.size();
    query_size_ = keys().shape.back();
  } else if (arrays_.sequence.given()) {
    if (arrays_.sequence.rank() != 1 || arrays_.sequence.size() < 1) {
      refuse("sequence has shape {}; must be (q), at least one", shape_text(arrays_.sequence.shape));
    }
    q = arrays_.sequence.size();
  }

  if (arrays_.sequence.given()) {
    const Index last = sequences() - 1;
    sequence_ = take_indices(
        arrays_.sequence, "sequence", q, 0, [&](std::size_t) { return last; }, "a sequence");
  } else {
    if (q != sequences()) {
      refuse("sequence is missing; {} queries and {} sequences need it (it may be left out when they are as many)", q,
             sequences());
    }
    sequence_.resize(static_cast<std::size_t>(q));
    std::iota(sequence_.begin(), sequence_.end(), Index{0});
  }

  query_row_.resize(static_cast<std::size_t>(q));
  switch (kind_) {
    case AttentionKind::cross:
      query_base_ = f64_span(queries).data();
      std::iota(query_row_.begin(), query_row_.end(), Index{0});
      break;
    case AttentionKind::self: {
      const auto last = [&](std::size_t i) { return length(sequence_[i]) - 1; };
      const auto tokens = take_indices(query_token, "query_token", q, 0, last, "a token of the query's sequence");
      query_base_ = f64_span(keys()).data();
      for (std::size_t i = 0; i < tokens.size(); ++i) query_row_[i] = offset(sequence_[i]) + tokens[i];
      break;
    }
    case AttentionKind::prompt:
      query_base_ = &kOne;
      break;
    case AttentionKind::next_token:
      throw std::logic_error("the queries of a next-token task are its last tokens");
  }
}

void AttentionTask::Contents::take_visible() {
  Array& visible = arrays_.visible;
  visible_ = Visibility(longest_);
  if (!visible.given()) {
    for (const Index s : sequence_) visible_.add(0, length(s));
  } else if (visible.scalar != Scalar::boolean) {
    if (visible.shape.size() == 2)
      refuse("visible has shape {} and numbers; a mask must be bool", shape_text(visible.shape));
    const auto length_of = [&](std::size_t i) { return length(sequence_[i]); };
    for (const Index count : take_indices(visible, "visible", queries(), 1, length_of, "a number of leading tokens"))
      visible_.add(0, count);
  } else {
    if (visible.shape != std::vector<Index>{queries(), longest_}) {
      refuse("visible has type bool and shape {}; must be ({},{}) bool or ({}) integers", shape_text(visible.shape),
             queries(), longest_, queries());
    }
    visible = to_native(visible);
    std::vector<Index> seen;
    std::map<std::pair<Index, std::vector<Index>>, Index> known;  // lists with gaps of a sequence: the first query
    for (Index i = 0; i < queries(); ++i) {
      const Index s = sequence_[static_cast<std::size_t>(i)];
      seen.clear();
      for (Index t = 0; t < length(s); ++t) {
        if (visible.data[i * longest_ + t] != std::byte{0}) seen.push_back(t);
      }
      if (seen.empty())
        refuse("visible[{}] has no True among the {} tokens of sequence {}; a query must see one", i, length(s), s);
      if (seen.back() - seen.front() + 1 == static_cast<Index>(seen.size())) {
        visible_.add(seen.front(), static_cast<Index>(seen.size()));
      } else if (const auto [same, is_new] = known.try_emplace({s, seen}, i); is_new) {
        visible_.add(seen);
      } else {
        visible_.add_as(same->second);
      }
    }
  }
  copy_scattered();
}

void AttentionTask::Contents::copy_scattered() {
  copied_.resize(static_cast<std::size_t>(visible_.packed()));
  for (Index i = 0; i < queries(); ++i) {
    if (!visible_.scattered(i)) continue;
    auto to = copied_.begin() + visible_.packed(i);
    for (const Index t : visible_.tokens(i)) *to++ = offset(sequence_[static_cast<std::size_t>(i)]) + t;
  }
  const auto copy_of = [&](const Array& array) {
    const ConstRows all(f64_span(array).data(), offsets_.back(), array.shape.back());
    RowMatrix rows(visible_.packed(), all.cols());
    for (Index k = 0; k < rows.rows(); ++k) rows.row(k) = all.row(copied_[static_cast<std::size_t>(k)]);
    return rows;
  };
  copied_keys_ = copy_of(keys());
  if (arrays_.keys.given()) copied_values_ = copy_of(arrays_.tokens);
}

void AttentionTask::Contents::take_bias() {
  Array& bias = arrays_.bias;
  if (!bias.given()) return;
  require_shape(bias, "bias", {queries(), longest_}, "one number per query and token");
  take_real(bias, "bias");
  const std::span<const double> from = f64_span(bias);
  bias_.reserve(static_cast<std::size_t>(visible_.total()));
  std::vector<double> read(from.size());
  for (Index i = 0; i < queries(); ++i) {
    first_bias_.push_back(static_cast<Index>(bias_.size()));
    for (const Index t : visible_.tokens(i)) {
      const auto place = static_cast<std::size_t>(i * longest_ + t);
      bias_.push_back(from[place]);
      read[place] = from[place];
    }
  }
  // Tasks that differ in what nothing reads are the same task, with the same fingerprint.
  if (std::memcmp(read.data(), from.data(), from.size_bytes()) != 0) bias = Array::own(std::move(read), bias.shape);
}

void AttentionTask::Contents::take_labels() {
  if (!arrays_.labels.given()) return;
  require_shape(arrays_.labels, "labels", {queries()}, "one entry per query");
  take_real(arrays_.labels, "labels");
  const auto labels = f64_span(arrays_.labels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != 1 && labels[i] != -1) refuse("labels[{}] = {}; must be -1 or +1", i, labels[i]);
  }
  labels_.assign(labels.begin(), labels.end());
}

void AttentionTask::Contents::take_head() {
  Array &head = arrays_.head, &hidden = arrays_.head_hidden, &quadratic = arrays_.head_quadratic;
  if (hidden.given() && quadratic.given())
    refuse("head_hidden and head_quadratic are both given; must be one or neither");
  if (quadratic.given() && !head.given()) refuse("head is missing; head_quadratic needs it");
  const Index value_size = arrays_.tokens.shape.back();
  Index width = value_size;
  if (hidden.given()) {
    if (hidden.rank() != 2 || hidden.shape[0] != value_size) {
      refuse("head_hidden has shape {}; must be ({},h)", shape_text(hidden.shape), value_size);
    }
    take_real(hidden, "head_hidden");
    width = hidden.shape[1];
    head_.kind = HeadKind::hidden;
    head_.B = ConstRows(f64_span(hidden).data(), hidden.shape[0], width);
    head_.v = Eigen::VectorXd::Ones(width);
  }
  const bool many = head.rank() == 2 && !hidden.given() && !quadratic.given();
  if (many) {  // one v per head of attention: no single head, so that kind stays `none` unless there is one row
    require_shape(head, "head", {head.shape[0], width}, "one row per head of attention");
    take_real(head, "head");
    if (head.shape[0] > 1) return;
    head_.kind = HeadKind::linear;
    head_.v = ConstVector(f64_span(head).data(), width);
    return;
  }
  if (head.given()) {
    require_shape(head, "head", {width},
                  hidden.given() ? "one weight per hidden unit" : "one weight per value coordinate");
    take_real(head, "head");
    if (head_.kind == HeadKind::none) head_.kind = HeadKind::linear;
    head_.v = ConstVector(f64_span(head).data(), width);
  }
  if (quadratic.given()) {
    require_shape(quadratic, "head_quadratic", {}, "a single number");
    take_real(quadratic, "head_quadratic");
    head_.kind = HeadKind::quadratic;
    head_.lambda = f64_span(quadratic)[0];
  }
}

AttentionTask::AttentionTask(TaskArrays arrays) : contents_(std::make_shared<const Contents>(std::move(arrays))) {}

ConstRows AttentionTask::keys(Index sequence) const {
  require_own_rows(*this);
  const double* base = f64_span(contents_->keys()).data();
  return {base + offset(sequence) * key_size(), length(sequence), key_size()};
}

ConstRows AttentionTask::values(Index sequence) const {
  require_own_rows(*this);
  const double* base = f64_span(contents_->arrays_.tokens).data();
  return {base + offset(sequence) * value_size(), length(sequence), value_size()};
}

Index AttentionTask::seen_row(Index query) const {
  require_own_rows(*this);
  const Visibility& all = visible();
  return all.scattered(query) ? tokens() + all.packed(query) : offset(sequence(query)) + seen(query).front();
}

ConstRows AttentionTask::seen_keys(Index query) const {
  require_own_rows(*this);
  const Visibility& all = visible();
  const double* rows = all.scattered(query) ? contents_->copied_keys_.row(all.packed(query)).data()
                                            : keys(sequence(query)).row(seen(query).front()).data();
  return {rows, visible(query), key_size()};
}

ConstRows AttentionTask::seen_values(Index query) const {
  if (!keys_differ()) return seen_keys(query);
  const Visibility& all = visible();
  const double* rows = all.scattered(query) ? contents_->copied_values_.row(all.packed(query)).data()
                                            : values(sequence(query)).row(seen(query).front()).data();
  return {rows, visible(query), value_size()};
}

ConstVector AttentionTask::query(Index query) const {
  if (next_token()) return {embeddings().row(last(query)).data(), query_size()};
  return {contents_->query_base_ + contents_->query_row_[static_cast<std::size_t>(query)] * contents_->query_size_,
          contents_->query_size_};
}

bool AttentionTask::masked() const {
  if (next_token()) return false;
  for (Index i = 0; i < queries(); ++i) {
    if (seen(i).back() >= visible(i)) return true;
  }
  return false;
}

bool AttentionTask::causal() const {
  if (next_token()) return false;
  for (Index i = 0; i < queries(); ++i) {
    if (visible(i) < length(sequence(i))) return true;
  }
  return false;
}

}  // namespace attsvm
