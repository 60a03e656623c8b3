#include "attsvm/theory.h"
#include "base/limits.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

WeightMargin margin_of(const AttentionTask& task, const RowMatrix& W, std::optional<Selection> selection,
                       const CheckSettings& settings, Threads& threads) {
  if (W.rows() != task.key_size() || W.cols() != task.query_size())
    refuse("W has shape ({},{}); must be ({},{}) as keys and queries are", W.rows(), W.cols(), task.key_size(),
           task.query_size());
  if (!selection) selection = Selection::single(attention_map(task, W, threads).selected);
  const MarginProblem problem = MarginProblem::attention(task, *selection);
  WeightMargin margin{.selection = std::move(*selection), .smallest = kInfinity};
  const Eigen::VectorXd values = problem.values(W);
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      if (problem.equal(k) || !(values(k) < margin.smallest)) continue;
      margin.smallest = values(k);
      margin.closest = {.query = group.query, .keep = problem.keep_token(group), .drop = problem.drop_token(group, k)};
    }
  }
  MarginSolver solver(threads);
  for (const Norm& norm : settings.norms) {
    const MarginSolution svm =
        solver.solve(problem, {.norm = norm, .time_limit = settings.time_limit, .progress = settings.progress});
    margin.shares.push_back({.norm = norm, .status = svm.status, .rho = {margin_share(problem, svm, W)}});
    if (svm.status == MarginStatus::optimal) margin.shares.back().margin = 1 / svm.objective;
  }
  return margin;
}

}  // namespace attsvm
