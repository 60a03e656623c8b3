#include "margin/streaming/row_choice.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace attsvm::internal {
namespace {

struct Candidate {
  double slack;
  Index row;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.slack != b.slack ? a.slack < b.slack : a.row < b.row;
  }
};

}  // namespace

void RowSummary::include(const RowSummary& other) {
  least = std::min(least, other.least);
  violation = std::max(violation, other.violation);
}

RowChoice::RowChoice(ScaledProblem& problem, const WorkingRows& rows)
    : problem_(&problem),
      rows_(&rows),
      picked_(static_cast<std::size_t>(problem.groups())),
      groups_(static_cast<std::size_t>(problem.groups())) {}

void RowChoice::see(Index row, double value, RowSummary& summary) const {
  const double rhs = problem_->rhs(row), wanted = rhs - value;
  if (mendable(row)) {
    summary.least = std::min(summary.least, value / rhs);
  } else {
    summary.violation = std::max(summary.violation, problem_->problem().equal(row) ? std::abs(wanted) : wanted);
  }
}

RowSummary RowChoice::choose(const double* W, const ChoiceRules& rules) {
  problem_->price(W, [&](Index i, const double* logits) { choose_group(i, logits, rules); });
  count();
  RowSummary all;
  for (const Group& group : groups_) all.include(group.summary);
  return of_all(all);
}

RowSummary RowChoice::of_all(RowSummary here) const {
  std::array numbers{-here.least, here.violation};
  problem_->sums().take_largest(numbers);
  return {-numbers[0], numbers[1]};
}

void RowChoice::choose_group(Index i, const double* logits, const ChoiceRules& rules) {
  thread_local std::vector<Candidate> candidates;
  thread_local std::vector<std::uint8_t> working;
  const MarginProblem& problem = problem_->problem();
  const MarginGroup& group = problem_->group(i);
  Group& result = groups_[static_cast<std::size_t>(i)];
  auto& picked = picked_[static_cast<std::size_t>(i)];
  picked.clear();
  candidates.clear();
  working.assign(static_cast<std::size_t>(group.rows), 0);
  RowSummary summary;
  const auto value_of = [&](Index row) { return logits[group.keep] - logits[problem.drop(row)]; };

  for (Index k = rows_->begin(i); k < rows_->end(i); ++k) {
    const Index row = rows_->row(k);
    const double value = value_of(row), slack = value - problem_->rhs(row);
    working[static_cast<std::size_t>(row - group.first_row)] = 1;
    see(row, value, summary);
    if (rows_->equal(k) || rows_->lambda[k] > 0 || slack < rules.within) {
      picked.push_back({row, k - rows_->begin(i), value});
    }
  }
  const auto kept = static_cast<Index>(picked.size());
  for (Index row = group.first_row; row < group.first_row + group.rows; ++row) {
    if (working[static_cast<std::size_t>(row - group.first_row)] != 0) continue;
    const double value = value_of(row), rhs = problem_->rhs(row);
    see(row, value, summary);
    if (problem.equal(row)) {
      picked.push_back({row, -1, value});
    } else if (rules.anything || value < rhs - (mendable(row) ? rules.tolerance * rhs : rules.violation)) {
      candidates.push_back({value - rhs, row});
    }
  }
  const std::size_t taken = std::min(static_cast<std::size_t>(rules.most), candidates.size());
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(taken), candidates.end());
  for (std::size_t c = 0; c < taken; ++c) {
    const auto [slack, row] = candidates[c];
    picked.push_back({row, -1, slack + problem_->rhs(row)});
  }
  result = {summary, static_cast<Index>(picked.size()) - kept, rows_->count(i) - kept};
}

void RowChoice::choose_from(const Eigen::VectorXd& lambda) {
  const MarginProblem& problem = problem_->problem();
  for (Index i = 0; i < problem_->groups(); ++i) {
    const MarginGroup& group = problem_->group(i);
    auto& picked = picked_[static_cast<std::size_t>(i)];
    picked.clear();
    for (Index row = group.first_row; row < group.first_row + group.rows; ++row) {
      if (problem.equal(row) || lambda(row) > 0) picked.push_back({row, -1, 0});
    }
    groups_[static_cast<std::size_t>(i)] = {{}, static_cast<Index>(picked.size()), 0};
  }
  count();
}

void RowChoice::count() {
  added_ = dropped_ = 0;
  for (const Group& group : groups_) {
    added_ += group.added;
    dropped_ += group.dropped;
  }
  added_ = problem_->sums().count(added_);
  dropped_ = problem_->sums().count(dropped_);
}

}  // namespace attsvm::internal
