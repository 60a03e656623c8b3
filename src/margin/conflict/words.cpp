#include <algorithm>
#include <cmath>

#include "attsvm/margin.h"
#include "base/refuse.h"

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
    const Index keep = problem.keep_token(group), t = problem.drop_token(group, k);
    const auto word = [&](Index token) { return internal::printable(problem.task().word(token)); };
    std::string what =
        problem.kind() == ProblemKind::graph ? fmt::format("after «{}»: «{}» {} «{}»", word(group.query), word(keep),
                                                           problem.equal(k) ? "level with" : "over", word(t))
        : t < 0            ? fmt::format("query {}: the value of token {} on the side of its label", group.query, keep)
        : problem.equal(k) ? fmt::format("query {}: tokens {} and {} level", group.query, keep, t)
                           : fmt::format("query {}: keep token {} over {}", group.query, keep, t);
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
