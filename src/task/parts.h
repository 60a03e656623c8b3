#pragma once

#include <span>
#include <string>
#include <vector>

#include "attsvm/task.h"

namespace attsvm::internal {

/// Rows first … last−1 of an array in C order, as a view of it.
Array rows_of(const Array& array, Index first, Index last);

/// A copy of a (q,T) array with `columns` of the T columns, or with more, which hold 0.
Array with_columns(const Array& table, Index columns);

/// Where a task can be cut: numbers of queries, ascending, from 0 to queries(). The queries before a cut read other
/// sequences than those after it.
std::vector<Index> cuts_of(const AttentionTask& task);

/// `count` parts of about as many queries each: the numbers of the queries between which to cut, from 0 to queries().
/// Where a part has many segments of ordered sums (base/ordered_sum.h), it has whole ones if it
/// can. InputError if the
/// task cannot be cut into so many.
std::vector<Index> even_cuts(const AttentionTask& task, Index count);

/// Queries `first` … `last`−1, both of cuts_of(), and the sequences from those that they read to the next part's. Views
/// of the task where its memory has the numbers in a row.
TaskArrays part_of(const AttentionTask& task, Index first, Index last);

/// Whether joined() copies the tokens, keys and queries of the parts, or gives these arrays their shapes alone.
enum class Joining : std::uint8_t { copies, shapes };

/// The task of which these are the parts: their sequences and queries one after another. InputError, which names parts
/// by `names`, unless they have the same sizes, kind and head.
TaskArrays joined(std::span<const AttentionTask> parts, std::span<const std::string> names,
                  Joining joining = Joining::copies);

}  // namespace attsvm::internal
