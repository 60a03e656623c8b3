#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/margin.h"
#include "base/ordered_sum.h"
#include "base/packed.h"

namespace attsvm::internal {

/// What one process has of a margin problem that several share: the rows of some queries, which are whole segments of
/// the sums over all queries. All processes do the same with theirs, and what they have together decides what they do
/// next, so that all take the same steps.
struct SharedRows {
  using Merge = std::function<std::string(std::string own, std::string_view next)>;
  using Finish = std::function<std::string(std::string all)>;

  Index first = 0;    ///< number of the first query here among all
  Index queries = 0;  ///< of all
  /// Merges what each process has in the order of queries, finishes it once, and gives it to all.
  std::function<std::string(std::string own, const Merge& merge, const Finish& finish)> together{};

  /// Whether queries from `first` to `last` are whole segments.
  static bool fit(Index queries, Index first, Index last);
};

/// Thrown where only a process that has all rows can go on; by all processes that share a problem at once.
struct NeedsAllRows {};

/// Sums over the rows of a problem, and what else depends on all of them. Their order depends on the queries of the
/// whole problem alone, so that they have the same bits for any number of threads and processes.
class RowSums {
 public:
  /// `shared`: null if this process has all rows. Both must outlive the sums.
  explicit RowSums(const MarginProblem& problem, const SharedRows* shared = nullptr);

  bool shared() const { return shared_ != nullptr; }
  Index rows() const { return rows_; }                  ///< of all processes
  Index groups() const { return groups_; }              ///< of all processes
  Index first_group() const { return first_group_; }    ///< number of the first group here among all
  bool all_positive() const { return all_positive_; }   ///< as MarginProblem::all_positive
  bool has_equal() const { return has_equal_; }         ///< some row is = b
  Index all_segments() const { return all_segments_; }  ///< of all processes
  Index segments() const { return segments_; }          ///< of this process
  Index begin(Index segment) const { return segments_ == 1 ? 0 : cuts_[static_cast<std::size_t>(segment)]; }  ///< group
  Index end(Index segment) const { return segments_ == 1 ? own_groups_ : cuts_[static_cast<std::size_t>(segment) + 1]; }
  Index first_row(Index segment) const { return row_before(begin(segment)); }
  Index end_row(Index segment) const { return row_before(end(segment)); }

  /// The sum of make(segment).
  template <class Number, class Make>
  Number number(const Make& make) const;
  /// The sum of matrices of `size` numbers. make(first, last, to) writes those of some segments, at most `wave`, one
  /// after another.
  template <class Number, class Make>
  void matrix(Index size, Index wave, Threads& threads, const Make& make, Number* total) const;
  /// Replaces each number by the largest that a process has; NaN if one has that.
  void take_largest(std::span<double> numbers) const;
  double largest(double number) const;
  double least(double number) const { return -largest(-number); }
  bool any(bool here) const { return shared_ != nullptr ? largest(here ? 1 : 0) > 0 : here; }
  Index count(Index here) const;  ///< the sum of whole numbers
  /// What all processes have, one after another.
  std::string chain(std::string here) const;

 private:
  template <class Sum>
  Sum total(OrderedSum<Sum>& here) const;
  Index row_before(Index group) const {
    return group < own_groups_ ? problem_.groups()[static_cast<std::size_t>(group)].first_row : problem_.rows();
  }

  const MarginProblem& problem_;
  const SharedRows* shared_;
  Index rows_, groups_, own_groups_, first_group_ = 0, all_segments_ = 1, segments_ = 1, first_segment_ = 0;
  bool all_positive_, has_equal_ = false;
  std::vector<Index> cuts_;  // between the groups of segments; not used if there is one
};

// The sums of a segment, as OrderedSum and messages have them.

template <class Number>
struct NumberSum {
  Number value;

  void add(const NumberSum& other) { value += other.value; }
  void put_into(Packer& out) const { out.put(value); }
  static NumberSum from(Unpacker& in) { return {in.get<Number>()}; }
};

template <class Number>
struct MatrixSum {
  std::vector<Number> entries;
  Threads* threads = nullptr;  // null: they are busy

  void add(const MatrixSum& other) {
    constexpr std::size_t kSlice = 1 << 15;
    const std::size_t slices = (entries.size() + kSlice - 1) / kSlice;
    const auto slice = [&](std::int64_t k) {
      const std::size_t first = static_cast<std::size_t>(k) * kSlice, last = std::min(entries.size(), first + kSlice);
      for (std::size_t j = first; j < last; ++j) entries[j] += other.entries[j];
    };
    if (threads != nullptr && slices > 1) {
      threads->for_each(static_cast<std::int64_t>(slices), slice);
    } else {
      for (std::size_t k = 0; k < slices; ++k) slice(static_cast<std::int64_t>(k));
    }
  }
  void put_into(Packer& out) const { out.put(std::span<const Number>(entries)); }
  static MatrixSum from(Unpacker& in) { return {in.list<Number>()}; }
};

template <class Sum>
Sum RowSums::total(OrderedSum<Sum>& here) const {
  if (shared_ == nullptr) return here.total();
  const auto packed = [](OrderedSum<Sum>& sum) {
    Packer out;
    for (const SumNode<Sum>& node : sum.nodes()) {
      out.put(node.first).put(node.size);
      node.sum.put_into(out);
    }
    return out.take();
  };
  const auto take = [](std::string_view bytes, OrderedSum<Sum>& sum) {
    for (Unpacker in(bytes); !in.done();) {
      const Index first = in.get<Index>(), size = in.get<Index>();
      sum.push({first, size, Sum::from(in)});
    }
  };
  const std::string all = shared_->together(
      packed(here),
      [&](const std::string& own, std::string_view next) {
        OrderedSum<Sum> both;
        take(own, both);
        take(next, both);
        return packed(both);
      },
      [&](const std::string& nodes) {
        OrderedSum<Sum> sum;
        take(nodes, sum);
        Packer out;
        sum.total().put_into(out);
        return out.take();
      });
  Unpacker in(all);
  return Sum::from(in);
}

template <class Number, class Make>
Number RowSums::number(const Make& make) const {
  if (shared_ == nullptr && segments_ == 1) return make(0);
  OrderedSum<NumberSum<Number>> here;
  for (Index segment = 0; segment < segments_; ++segment) here.push({first_segment_ + segment, 1, {make(segment)}});
  return total(here).value;
}

template <class Number, class Make>
void RowSums::matrix(Index size, Index wave, Threads& threads, const Make& make, Number* to) const {
  if (shared_ == nullptr && segments_ == 1) return make(0, 1, to);
  OrderedSum<MatrixSum<Number>> here;
  std::vector<Number> made(static_cast<std::size_t>(size * std::min(wave, segments_)));
  for (Index first = 0; first < segments_; first += wave) {
    const Index last = std::min(segments_, first + wave);
    make(first, last, made.data());
    for (Index segment = first; segment < last; ++segment) {
      const Number* one = made.data() + (segment - first) * size;
      here.push({first_segment_ + segment, 1, {std::vector<Number>(one, one + size), &threads}});
    }
  }
  const std::vector<Number> all = total(here).entries;
  std::copy(all.begin(), all.end(), to);
}

}  // namespace attsvm::internal
