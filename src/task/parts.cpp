#include "task/parts.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/ordered_sum.h"
#include "base/refuse.h"
#include "task/task_fields.h"

namespace attsvm::internal {
namespace {

std::vector<Index> shifted(const std::vector<Index>& numbers, Index by) {
  std::vector<Index> moved = numbers;
  for (Index& number : moved) number += by;
  return moved;
}

Array list(std::vector<Index> numbers) {
  const auto size = static_cast<Index>(numbers.size());
  return Array::own(std::move(numbers), {size});
}

using Parts = std::span<const AttentionTask>;

bool any_has(Parts parts, Array TaskArrays::*member) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const AttentionTask& part) { return (part.arrays().*member).given(); });
}

/// The numbers of one array of all parts, one after another, as rows of such a shape.
Array stacked(Parts parts, Array TaskArrays::*member, const std::vector<Index>& row_shape, Joining joining) {
  const Array& first = parts[0].arrays().*member;
  Index size = 0, row = 1;
  for (const AttentionTask& part : parts) size += (part.arrays().*member).size();
  for (const Index extent : row_shape) row *= extent;
  std::vector<Index> shape{size / row};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  if (joining == Joining::shapes) return Array(first.scalar, std::move(shape), nullptr);
  if (parts.size() == 1) return Array(first.scalar, std::move(shape), first.data, first.owner);
  const std::shared_ptr<std::byte[]> memory(new std::byte[static_cast<std::size_t>(size * size_of(first.scalar))]);
  std::byte* to = memory.get();
  for (const AttentionTask& part : parts) {
    const Array& array = part.arrays().*member;
    std::memcpy(to, array.data, static_cast<std::size_t>(array.bytes()));
    to += array.bytes();
  }
  return Array(first.scalar, std::move(shape), memory.get(), memory);
}

/// One integer per query.
template <class Number>
Array listed(Parts parts, Number number) {
  std::vector<Index> numbers;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    for (Index i = 0; i < parts[k].queries(); ++i) numbers.push_back(number(k, i));
  }
  return list(std::move(numbers));
}

/// (q,T) flags of all parts.
template <class Flag>
Array mask_of(Parts parts, Index longest, Flag flag) {
  std::vector<bool> flags;
  for (const AttentionTask& part : parts) {
    for (Index i = 0; i < part.queries(); ++i) {
      for (Index t = 0; t < longest; ++t) flags.push_back(flag(part, i, t));
    }
  }
  const Index rows = static_cast<Index>(flags.size()) / longest;
  return Array::own(flags, {rows, longest});
}

/// The numbers added to the logits, 0 in parts that have none.
Array biases(Parts parts, Index queries, Index longest) {
  std::vector<double> all(static_cast<std::size_t>(queries * longest));
  double* to = all.data();
  for (const AttentionTask& part : parts) {
    const double* from = part.biased() ? f64_span(part.arrays().bias).data() : nullptr;
    for (Index i = 0; i < part.queries(); ++i, to += longest) {
      if (from != nullptr) std::copy_n(from + i * part.longest(), part.longest(), to);
    }
  }
  return Array::own(std::move(all), {queries, longest});
}

bool same(const Array& one, const Array& other) {
  return one.given() == other.given() && one.shape == other.shape &&
         (!one.given() || std::memcmp(one.data, other.data, static_cast<std::size_t>(one.bytes())) == 0);
}

/// The first reason why the parts are not of one task.
void require_one_task(Parts parts, std::span<const std::string> names) {
  const AttentionTask& first = parts[0];
  for (std::size_t k = 1; k < parts.size(); ++k) {
    const AttentionTask& part = parts[k];
    const auto differ = [&](std::string_view what, const auto& here, const auto& there) {
      if (here != there)
        refuse("{}: {} is {}, but {} in {}; all parts of a task must agree", names[k], what, there, here, names[0]);
    };
    differ("the kind of attention", name_of(first.kind()), name_of(part.kind()));
    differ("d", first.key_size(), part.key_size());
    differ("dz", first.query_size(), part.query_size());
    differ("dv", first.value_size(), part.value_size());
    for (const auto& [member, name] : {std::pair{&TaskArrays::head, "head"},
                                       {&TaskArrays::head_hidden, "head_hidden"},
                                       {&TaskArrays::head_quadratic, "head_quadratic"}}) {
      if (!same(first.arrays().*member, part.arrays().*member))
        refuse("{}: {} is not that of {}; all parts of a task must have the same", names[k], name, names[0]);
    }
    for (const auto& [member, name] :
         {std::pair{&TaskArrays::keys, "keys"}, {&TaskArrays::bias, "bias"}, {&TaskArrays::select, "select"}}) {
      const bool there = (first.arrays().*member).given();
      if ((part.arrays().*member).given() != there)
        refuse("{}: {} is {}, unlike in {}; all parts of a task must have it, or none", names[k], name,
               there ? "missing" : "given", names[0]);
    }
  }
}

void require_parts_possible(const AttentionTask& task) {
  if (task.next_token()) refuse("a next-token task cannot be in parts; its sequences share one table of embeddings");
}

}  // namespace

Array rows_of(const Array& array, Index first, Index last) {
  Array part = array;
  part.shape.front() = last - first;
  part.data += array.bytes() / array.shape.front() * first;
  return part;
}

Array with_columns(const Array& table, Index columns) {
  const Index rows = table.shape[0], had = table.shape[1], size = size_of(table.scalar);
  const std::shared_ptr<std::byte[]> memory(new std::byte[static_cast<std::size_t>(rows * columns * size)]());
  for (Index i = 0; i < rows; ++i)
    std::memcpy(memory.get() + i * columns * size, table.data + i * had * size,
                static_cast<std::size_t>(std::min(had, columns) * size));
  return Array(table.scalar, {rows, columns}, memory.get(), memory);
}

std::vector<Index> cuts_of(const AttentionTask& task) {
  const Index q = task.queries();
  std::vector<Index> least(static_cast<std::size_t>(q) + 1, task.sequences());  // among the queries from here on
  for (Index i = q; i-- > 0;)
    least[static_cast<std::size_t>(i)] = std::min(least[static_cast<std::size_t>(i) + 1], task.sequence(i));
  std::vector<Index> cuts{0};
  Index most = task.sequence(0);
  for (Index i = 1; i <= q; ++i) {
    if (i == q || most < least[static_cast<std::size_t>(i)]) cuts.push_back(i);
    if (i < q) most = std::max(most, task.sequence(i));
  }
  return cuts;
}

std::vector<Index> even_cuts(const AttentionTask& task, Index count) {
  require_parts_possible(task);
  const std::vector<Index> cuts = cuts_of(task);
  const auto most = static_cast<Index>(cuts.size()) - 1;
  if (count > most)
    refuse("can be cut into {} part{} at most, because a part has whole sequences", most, most == 1 ? "" : "s");
  const Index q = task.queries();
  const Segments segments(q);
  constexpr Index kMany = 8;  // whole segments make parts unequal by an eighth at most
  const bool whole = segments.count() >= kMany * count;
  std::vector<Index> chosen{0};
  Index at = 0;
  for (Index k = 1; k < count; ++k) {
    const Index goal = whole ? segments.begin((k * segments.count() + count / 2) / count) : k * q / count;
    const Index last = most - (count - k);  // leaves cuts for the parts that follow
    ++at;
    while (at < last && std::abs(cuts[static_cast<std::size_t>(at) + 1] - goal) <=
                            std::abs(cuts[static_cast<std::size_t>(at)] - goal))
      ++at;
    chosen.push_back(cuts[static_cast<std::size_t>(at)]);
  }
  chosen.push_back(q);
  return chosen;
}

TaskArrays part_of(const AttentionTask& task, Index first, Index last) {
  const Index q = task.queries();
  const auto sequence_at = [&](Index query) {  // where the part that begins with this query has its first sequence
    if (query == 0) return Index{0};
    Index least = task.sequences();
    for (Index i = query; i < q; ++i) least = std::min(least, task.sequence(i));
    return least;
  };
  const Index begin = sequence_at(first), end = last == q ? task.sequences() : sequence_at(last);
  const TaskArrays& all = task.arrays();
  TaskArrays part;
  Index longest = 0;
  for (Index s = begin; s < end; ++s) longest = std::max(longest, task.length(s));
  for (const TaskField& field : task_fields()) {
    const Array& whole = all.*field.member;
    if (!whole.given()) continue;
    Array& array = part.*field.member;
    if (field.member == &TaskArrays::tokens || field.member == &TaskArrays::keys) {
      array = task.ragged() ? rows_of(whole, task.offset(begin), task.offset(end)) : rows_of(whole, begin, end);
    } else if (field.member == &TaskArrays::offsets) {
      std::vector<Index> offsets;
      for (Index s = begin; s <= end; ++s) offsets.push_back(task.offset(s) - task.offset(begin));
      array = list(std::move(offsets));
    } else if (field.member == &TaskArrays::sequence) {
      array = list(shifted(to_indices(rows_of(whole, first, last), "sequence"), -begin));
    } else if (field.member == &TaskArrays::head || field.member == &TaskArrays::head_hidden ||
               field.member == &TaskArrays::head_quadratic) {
      array = whole;
    } else {
      array = rows_of(whole, first, last);
      if (array.scalar == Scalar::boolean || field.member == &TaskArrays::bias) array = with_columns(array, longest);
    }
  }
  return part;
}

TaskArrays joined(Parts parts, std::span<const std::string> names, Joining joining) {
  require_parts_possible(parts[0]);
  require_one_task(parts, names);
  const AttentionTask& first = parts[0];
  Index longest = 0, queries = 0, sequences = 0;
  bool ragged = false;
  std::vector<Index> offsets{0}, before;  // before: the sequences of the parts before each
  for (const AttentionTask& part : parts) {
    ragged = ragged || part.ragged() || part.longest() != first.longest();
    longest = std::max(longest, part.longest());
    before.push_back(sequences);
    queries += part.queries();
    sequences += part.sequences();
    for (Index s = 0; s < part.sequences(); ++s) offsets.push_back(offsets.back() + part.length(s));
  }
  const auto rows = [&](Index size) {
    return ragged ? std::vector<Index>{size} : std::vector<Index>{first.longest(), size};
  };
  TaskArrays all;
  for (const auto member : {&TaskArrays::head, &TaskArrays::head_hidden, &TaskArrays::head_quadratic})
    all.*member = first.arrays().*member;
  all.tokens = stacked(parts, &TaskArrays::tokens, rows(first.value_size()), joining);
  if (first.keys_differ()) all.keys = stacked(parts, &TaskArrays::keys, rows(first.key_size()), joining);
  if (ragged) all.offsets = list(std::move(offsets));
  if (first.kind() == AttentionKind::cross)
    all.queries = stacked(parts, &TaskArrays::queries, {first.query_size()}, joining);
  if (first.kind() == AttentionKind::self)
    all.query_token = stacked(parts, &TaskArrays::query_token, {}, Joining::copies);
  if (queries != sequences || any_has(parts, &TaskArrays::sequence))
    all.sequence = listed(parts, [&](std::size_t k, Index i) { return before[k] + parts[k].sequence(i); });
  if (any_has(parts, &TaskArrays::labels)) {
    std::vector<double> labels;
    for (const AttentionTask& part : parts) {
      for (Index i = 0; i < part.queries(); ++i) labels.push_back(part.label(i));
    }
    all.labels = Array::own(std::move(labels), {queries});
  }
  if (any_has(parts, &TaskArrays::bias)) all.bias = biases(parts, queries, longest);
  if (std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.arrays().visible.rank() == 2; })) {
    all.visible =
        mask_of(parts, longest, [](const AttentionTask& part, Index i, Index t) { return part.visible().sees(i, t); });
  } else if (any_has(parts, &TaskArrays::visible)) {
    all.visible = listed(parts, [&](std::size_t k, Index i) { return parts[k].visible(i); });
  }
  if (first.select()) {
    const bool mask =
        std::any_of(parts.begin(), parts.end(), [](const auto& part) { return part.arrays().select.rank() == 2; });
    all.select = mask ? mask_of(parts, longest,
                                [](const AttentionTask& part, Index i, Index t) { return part.select()->keeps(i, t); })
                      : listed(parts, [&](std::size_t k, Index i) { return parts[k].select()->first(i); });
  }
  return all;
}

}  // namespace attsvm::internal
