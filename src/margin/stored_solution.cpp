#include "margin/stored_solution.h"

#include <array>
#include <string_view>
#include <utility>

namespace attsvm {
namespace internal {

std::string norm_words(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNamed{{{"fro", "Frobenius norm"},
                                                                                 {"nuc", "nuclear norm"},
                                                                                 {"spec", "spectral norm"},
                                                                                 {"max", "maximum norm"},
                                                                                 {"l1", "l1 norm"}}};
  for (const auto& [named, words] : kNamed) {
    if (name == named) return std::string(words);
  }
  const auto colon = name.find(':');
  if (colon == std::string::npos) return "norm " + name;
  return (name.starts_with("schatten") ? "Schatten norm of power " : "entrywise norm of power ") +
         name.substr(colon + 1);
}

}  // namespace internal

StoredSolution stored(const MarginProblem& problem, const MarginSolution& solution, double tolerance) {
  StoredSolution result{.norm = solution.norm.name(),
                        .problem = std::string(name_of(problem.kind())),
                        .status = std::string(name_of(solution.status)),
                        .W = solution.W};
  if (solution.norm.is_nuclear()) {
    result.K = solution.K;
    result.Q = solution.Q;
    result.has_factors = true;
  }
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      result.row_query.push_back(group.query);
      result.row_keep.push_back(problem.keep_token(group));
      result.row_drop.push_back(problem.drop_token(group, k));
      result.row_equal.push_back(problem.equal(k));
      result.rhs.push_back(problem.rhs(k));
    }
  }
  result.slack.assign(solution.slack.begin(), solution.slack.end());
  result.dual.assign(solution.dual.begin(), solution.dual.end());
  result.tolerance = tolerance;
  result.objective = solution.objective;
  result.dual_objective = solution.dual_objective;
  if (problem.kind() != ProblemKind::graph) result.select = problem.selection().mask(problem.task().longest());
  result.relax = problem.relaxed();
  result.penalty = solution.penalty;
  result.xi.assign(solution.xi.begin(), solution.xi.end());
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
