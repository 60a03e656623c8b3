#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attsvm/margin.h"

namespace attsvm {

std::vector<std::string> describe_conflict(const MarginProblem& problem, const Eigen::VectorXd& dual,
                                           std::size_t most) {
  std::vector<Index> order;
  std::vector<const MarginGroup*> group_of(static_cast<std::size_t>(problem.rows()));
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      group_of[static_cast<std::size_t>(k)] = &group;
      if (dual(k) != 0) order.push_back(k);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return std::abs(dual(a)) > std::abs(dual(b)); });
  std::vector<std::string> lines;
  Eigen::VectorXd delta(problem.d());
  for (const Index k : order) {
    if (lines.size() == most) {
      lines.push_back(fmt::format("... {} rows in all", order.size()));
      break;
    }
    const MarginGroup& group = *group_of[static_cast<std::size_t>(k)];
    problem.delta(group, k, delta.data());
    const Index t = problem.drop(k);
    std::string what =
        t < 0 ? fmt::format("query {}: the value of token {} on the side of its label", group.query, group.keep)
        : problem.equal(k) ? fmt::format("query {}: tokens {} and {} level", group.query, group.keep, t)
                           : fmt::format("query {}: keep token {} over {}", group.query, group.keep, t);
    if (t >= 0 && delta.isZero(0)) {
      what += ", but the two tokens are equal";
    } else if (ConstVector(group.z, problem.dz()).isZero(0)) {
      what += ", but its query vector is zero";
    }
    lines.push_back(fmt::format("{} (weight {:.3g})", what, dual(k)));
  }
  return lines;
}

}  // namespace attsvm
