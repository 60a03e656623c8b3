#include "margin/rows/row_sums.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {

bool SharedRows::fit(Index queries, Index first, Index last) {
  const Segments segments(queries);
  const auto cut = [&](Index query) { return query == queries || segments.begin(segments.of(query)) == query; };
  return cut(first) && cut(last);
}

RowSums::RowSums(const MarginProblem& problem, const SharedRows* shared)
    : problem_(problem),
      shared_(shared),
      rows_(problem.rows()),
      groups_(static_cast<Index>(problem.groups().size())),
      own_groups_(groups_),
      all_positive_(problem.all_positive()) {
  for (Index k = 0; k < rows_ && !all_positive_ && !has_equal_; ++k) has_equal_ = problem.equal(k);
  // A graph has several groups per query, and in another order.
  const bool by_query = problem.kind() != ProblemKind::graph;
  const Index queries = problem.task().queries();
  const Segments all(shared != nullptr ? shared->queries : by_query ? queries : groups_);
  all_segments_ = all.count();
  if (all_segments_ > 1) {
    const Index begin = shared != nullptr ? shared->first : 0, end = begin + (by_query ? queries : groups_);
    first_segment_ = all.of(begin);
    segments_ = all.of(end - 1) + 1 - first_segment_;
    cuts_.assign(1, 0);
    for (Index segment = first_segment_; segment < first_segment_ + segments_; ++segment) {
      const Index last = all.end(segment) - begin;
      const auto before = [&](const MarginGroup& group, Index query) { return group.query < query; };
      cuts_.push_back(by_query ? std::lower_bound(problem.groups().begin(), problem.groups().end(), last, before) -
                                     problem.groups().begin()
                               : last);
    }
  }
  if (shared == nullptr) return;
  Packer here;
  here.put(shared->first).put(rows_).put(groups_).put(all_positive_).put(has_equal_);
  const std::string each = chain(here.take());
  rows_ = groups_ = 0;
  for (Unpacker in(each); !in.done();) {
    const Index first = in.get<Index>(), rows = in.get<Index>(), groups = in.get<Index>();
    rows_ += rows;
    groups_ += groups;
    if (first < shared->first) first_group_ += groups;
    all_positive_ = in.get<bool>() && all_positive_;
    has_equal_ = in.get<bool>() || has_equal_;
  }
}

std::string RowSums::chain(std::string here) const {
  if (shared_ == nullptr) return here;
  return shared_->together(std::move(here), [](std::string own, std::string_view next) { return own.append(next); },
                           {});
}

void RowSums::take_largest(std::span<double> numbers) const {
  if (shared_ == nullptr) return;
  Packer here;
  for (const double number : numbers) here.put(number);
  const std::string all = shared_->together(here.take(),
                                            [](const std::string& own, std::string_view next) {
                                              Packer both;
                                              for (Unpacker mine(own), others(next); !mine.done();) {
                                                const double a = mine.get<double>(), b = others.get<double>();
                                                both.put(a >= b || std::isnan(a) ? a : b);
                                              }
                                              return both.take();
                                            },
                                            {});
  Unpacker in(all);
  for (double& number : numbers) number = in.get<double>();
}

double RowSums::largest(double number) const {
  take_largest({&number, 1});
  return number;
}

Index RowSums::count(Index here) const {
  if (shared_ == nullptr) return here;
  const std::string each = chain(Packer().put(here).take());
  Index sum = 0;
  for (Unpacker in(each); !in.done();) sum += in.get<Index>();
  return sum;
}

}  // namespace attsvm::internal
