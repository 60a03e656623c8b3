#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "attsvm/array.h"

namespace attsvm::internal {

// Sums over many rows, such as the queries of a task, are taken in an order that depends on their count alone: rows
// make segments, and the sums of segments are added up along a binary tree. So they have the same bytes wherever a
// segment was summed, on whichever thread or machine.

/// The segments of so many rows: a power of two, so that as many parts, or a power of two fewer, are nodes of the tree.
/// Up to 2,047 rows are one segment.
class Segments {
 public:
  explicit Segments(Index rows) : rows_(rows) {
    constexpr Index kLeastRows = 1024, kMost = 1024;
    while (count_ < kMost && rows / (2 * count_) >= kLeastRows) count_ *= 2;
  }
  Index count() const { return count_; }
  Index begin(Index segment) const { return rows_ * segment / count_; }
  Index end(Index segment) const { return begin(segment + 1); }
  Index of(Index row) const { return ((row + 1) * count_ - 1) / rows_; }

 private:
  Index rows_, count_ = 1;
};

/// The sum of segments first … first+size−1; size is a power of two that divides first.
template <class Sum>
struct SumNode {
  Index first, size;
  Sum sum;
};

/// Adds up segments, which come in ascending order, one by one or many together. A + B means A.add(B).
template <class Sum>
class OrderedSum {
 public:
  void push(SumNode<Sum> node) {
    while (!nodes_.empty() && nodes_.back().size == node.size && nodes_.back().first + node.size == node.first &&
           nodes_.back().first % (2 * node.size) == 0) {
      nodes_.back().sum.add(node.sum);
      node = std::move(nodes_.back());
      node.size *= 2;
      nodes_.pop_back();
    }
    nodes_.push_back(std::move(node));
  }

  /// What was pushed, in as few nodes as the tree has for it.
  std::vector<SumNode<Sum>>& nodes() { return nodes_; }

  /// The sum of all segments, of which there must be one at least. To be called once.
  Sum total() {
    Sum sum = std::move(nodes_.back().sum);
    for (nodes_.pop_back(); !nodes_.empty(); nodes_.pop_back()) {
      nodes_.back().sum.add(sum);
      std::swap(sum, nodes_.back().sum);
    }
    return sum;
  }

 private:
  std::vector<SumNode<Sum>> nodes_;
};

}  // namespace attsvm::internal
