#include "margin/stored_solution.h"

#include <algorithm>
#include <cmath>

namespace attsvm {

StoredSolution stored(const MarginProblem& problem, const MarginSolution& solution, double tolerance) {
  StoredSolution result{.norm = solution.norm.name(),
                        .problem = std::string(name_of(problem.kind())),
                        .status = std::string(name_of(solution.status)),
                        .W = solution.W};
  if (solution.norm.kind == NormKind::nuclear) {
    result.K = solution.K;
    result.Q = solution.Q;
    result.has_factors = true;
  }
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      result.row_query.push_back(group.query);
      result.row_keep.push_back(group.keep);
      result.row_drop.push_back(problem.drop(k));
      result.row_equal.push_back(problem.equal(k));
      result.rhs.push_back(problem.rhs(k));
    }
  }
  result.slack.assign(solution.slack.begin(), solution.slack.end());
  result.dual.assign(solution.dual.begin(), solution.dual.end());
  result.tolerance = tolerance;
  result.objective = solution.objective;
  result.dual_objective = solution.dual_objective;
  result.select = problem.selection().mask(problem.task().longest());
  result.relax = problem.relaxed();
  return result;
}

MarginSolution warm_start_from(const StoredSolution& solution) {
  MarginSolution start;
  start.status = solution.status == "infeasible" ? MarginStatus::infeasible : MarginStatus::limit;
  start.W = solution.W;
  start.norm = Norm::parse(solution.norm);
  start.K = solution.K;
  start.Q = solution.Q;
  start.dual = ConstVector(solution.dual.data(), static_cast<Index>(solution.dual.size()));
  return start;
}

}  // namespace attsvm

namespace attsvm::internal {

bool has_margin(const StoredSolution& solution) {
  for (std::size_t k = 0; k < solution.rhs.size(); ++k) {
    if (!solution.row_equal[k] && solution.rhs[k] > 0) return true;
  }
  return false;
}

bool is_support(const StoredSolution& solution, std::size_t k) {
  return solution.status != "infeasible" &&
         std::abs(solution.slack[k]) <= kSupportTolerance * std::max(1.0, std::abs(solution.rhs[k]));
}

Index support_of(const StoredSolution& solution) {
  Index count = 0;
  for (std::size_t k = 0; k < solution.slack.size(); ++k) count += is_support(solution, k) ? 1 : 0;
  return count;
}

Index rank_of(const StoredSolution& solution) {
  return solution.has_factors ? solution.K.cols() : numerical_rank(solution.W);
}

}  // namespace attsvm::internal
