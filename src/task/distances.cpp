#include "task/distances.h"

#include <algorithm>
#include <limits>

#include "attsvm/positions.h"

namespace attsvm {
namespace {

/// Where each query stands: at its own token, or at the last one that it sees.
std::vector<Index> places_of(const AttentionTask& task) {
  const Array& tokens = task.arrays().query_token;
  if (tokens.given()) return to_indices(tokens, "query_token");
  std::vector<Index> places;
  for (Index i = 0; i < task.queries(); ++i) places.push_back(task.seen(i).back());
  return places;
}

/// (q,columns) with the bias of every token that its query sees, and 0 elsewhere. No query sees a later token.
RowMatrix bias_of(const AttentionTask& task, Index columns) {
  RowMatrix bias = RowMatrix::Zero(task.queries(), columns);
  for (Index i = 0; i < task.queries() && task.biased(); ++i) {
    const auto seen = task.seen(i);
    for (std::size_t k = 0; k < seen.size(); ++k) bias(i, seen[k]) = task.bias(i)[k];
  }
  return bias;
}

/// The first `columns` columns of a mask (q,T); other arrays as they are.
Array cropped(const Array& given, Index columns) {
  if (!given.given() || given.rank() != 2) return given;
  const Array native = to_native(given);
  std::vector<bool> flags;
  for (Index i = 0; i < given.shape[0]; ++i) {
    for (Index t = 0; t < columns; ++t) flags.push_back(native.data[i * given.shape[1] + t] != std::byte{0});
  }
  return Array::own(flags, {given.shape[0], columns});
}

}  // namespace

DistanceRange distance_range(const AttentionTask& task) {
  DistanceRange range{std::numeric_limits<Index>::max(), std::numeric_limits<Index>::min()};
  const std::vector<Index> places = places_of(task);
  for (Index i = 0; i < task.queries(); ++i) {
    const Index place = places[static_cast<std::size_t>(i)];
    range.least = std::min(range.least, place - task.seen(i).back());
    range.largest = std::max(range.largest, place - task.seen(i).front());
  }
  return range;
}

namespace internal {

AttentionTask with_fixed_slope(const AttentionTask& task, double slope) {
  const std::vector<Index> places = places_of(task);
  RowMatrix bias = bias_of(task, task.longest());
  for (Index i = 0; i < task.queries(); ++i) {
    for (const Index t : task.seen(i))
      bias(i, t) -= slope * static_cast<double>(places[static_cast<std::size_t>(i)] - t);
  }
  TaskArrays arrays = task.arrays();
  arrays.bias = Array::own(bias);
  return AttentionTask(std::move(arrays));
}

AttentionTask with_distances(const AttentionTask& task, PositionKind kind) {
  const DistanceRange range = distance_range(task);
  const std::vector<Index> places = places_of(task);
  const Index d = task.key_size(), dz = task.query_size(), q = task.queries();
  const Index products = kind == PositionKind::relative ? d : d * dz;
  const Index distances = kind == PositionKind::slope ? 1 : range.largest - range.least + 1;

  // Every query reads a sequence of its own: the tokens up to the last one that it sees.
  std::vector<Index> offsets{0};
  Index longest = 0;
  for (Index i = 0; i < q; ++i) {
    const Index length = task.seen(i).back() + 1;
    offsets.push_back(offsets.back() + length);
    longest = std::max(longest, length);
  }
  RowMatrix keys = RowMatrix::Zero(offsets.back(), products + distances), values(offsets.back(), task.value_size());
  for (Index i = 0; i < q; ++i) {
    const Index first = offsets[static_cast<std::size_t>(i)], length = task.seen(i).back() + 1, s = task.sequence(i);
    const ConstRows X = task.keys(s);
    const ConstVector z = task.query(i);
    values.middleRows(first, length) = task.values(s).topRows(length);
    for (Index t = 0; t < length; ++t) {
      auto key = keys.row(first + t);
      if (kind == PositionKind::relative) {
        key.head(d) = X.row(t);
      } else {
        for (Index j = 0; j < d; ++j) key.segment(j * dz, dz) = X(t, j) * z.transpose();
      }
      const Index distance = places[static_cast<std::size_t>(i)] - t;
      if (kind == PositionKind::slope) {
        key[products] = -static_cast<double>(distance);
      } else if (distance >= range.least && distance <= range.largest) {  // others are of hidden tokens
        key[products + distance - range.least] = 1;
      }
    }
  }

  const TaskArrays& given = task.arrays();
  TaskArrays arrays;
  arrays.tokens = Array::own(values);
  arrays.keys = Array::own(keys);
  arrays.offsets = Array::own(std::move(offsets), {q + 1});
  if (kind == PositionKind::relative) {
    RowMatrix queries = RowMatrix::Ones(q, dz + 1);
    for (Index i = 0; i < q; ++i) queries.row(i).head(dz) = task.query(i).transpose();
    arrays.queries = Array::own(queries);
  }
  if (task.masked()) arrays.visible = cropped(given.visible, longest);
  if (task.biased()) arrays.bias = Array::own(bias_of(task, longest));
  arrays.labels = given.labels;
  arrays.head = given.head;
  arrays.head_hidden = given.head_hidden;
  arrays.head_quadratic = given.head_quadratic;
  arrays.select = cropped(given.select, longest);
  return AttentionTask(std::move(arrays));
}

}  // namespace internal
}  // namespace attsvm
