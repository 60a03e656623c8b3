#include "margin/power/row_set.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kMostRows = 8000;                // at once: half a gigabyte for their equations
constexpr Index kMostProducts = 40'000'000'000;  // rows · queries · unknowns, to form these
constexpr Index kFew = 500;                      // rows that are taken at once unless that takes too many products
constexpr double kSpare = 1.5;                   // rows to start with, in multiples of those that must be taken

}  // namespace

bool RowSet::choose(const MarginProblem& problem, const Eigen::VectorXd& slack, const Eigen::VectorXd& dual) {
  const auto queries = static_cast<Index>(problem.groups().size());
  most_ = std::min(kMostRows, kMostProducts / problem.d() / problem.dz() / std::max<Index>(queries, 1));
  all_ = problem.rows() <= std::min(kFew, most_);
  if (all_) return true;
  Eigen::VectorXd order = slack;
  Index needed = 0;
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k) && dual(k) == 0) continue;
    order(k) = -kInfinity;
    ++needed;
  }
  if (needed > most_) return false;
  const Index first = std::max(kFew, static_cast<Index>(kSpare * static_cast<double>(needed)));
  all_ = first >= problem.rows();
  rows_.clear();
  if (!all_) take_lowest(order, std::min(first, most_));
  return true;
}

/// Adds the rows that come first in the order, so that there are `count` of them or as many as tie with the last.
void RowSet::take_lowest(const Eigen::VectorXd& order, Index count) {
  sorted_.grow(order.size());
  std::copy_n(order.data(), order.size(), sorted_.data());
  std::nth_element(sorted_.data(), sorted_.data() + count - 1, sorted_.data() + order.size());
  const double last = sorted_[count - 1];
  Index open = count;  // ties with the last are taken in order
  for (Index k = 0; k < order.size(); ++k) {
    if (order(k) < last) --open;
  }
  next_.clear();
  for (Index k = 0; k < order.size(); ++k) {
    if (order(k) < last || (order(k) == last && open-- > 0)) next_.push(k);
  }
  next_.swap(rows_);
}

bool RowSet::add_violated(const MarginProblem& problem, const RowMatrix& W) {
  if (all_) return false;
  const Eigen::VectorXd values = problem.values(W);
  double stretch = 0;  // of W, to meet the rows of the set
  for (const Index k : rows_) {
    if (!problem.equal(k) && problem.rhs(k) > 0) stretch = std::max(stretch, problem.rhs(k) / values(k));
  }
  if (!(stretch > 0 && std::isfinite(stretch))) return false;
  Eigen::VectorXd order(problem.rows());
  Index member = 0, violated = 0;
  for (Index k = 0; k < problem.rows(); ++k) {
    const bool in = rows_.meets(k, member);
    order(k) = in ? -kInfinity : stretch * values(k) - problem.rhs(k);
    if (!in && order(k) < 0) ++violated;
  }
  const Index room = most_ - rows_.size();
  if (violated == 0 || room == 0) return false;
  // Rows that are nearly violated save later rounds.
  take_lowest(order, rows_.size() + std::min(room, 2 * violated));
  return true;
}

}  // namespace attsvm::internal
