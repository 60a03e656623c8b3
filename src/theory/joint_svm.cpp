#include "theory/joint_svm.h"

#include <algorithm>
#include <limits>

#include "attsvm/theory.h"

namespace attsvm::internal {
namespace {

constexpr double kNothing = 1e-12;  // smaller right-hand sides count as 0, since queries are divided by them
constexpr double kExact = 1e-13;    // relative error of Ξ at which the search ends
constexpr int kMostSolves = 100;    // to find Ξ; about ten are usual

/// The task with right-hand sides max(0, 1 − beyond_i/margin) written into its queries.
JointSvm with_margin(const AttentionTask& task, std::span<const double> beyond, double margin) {
  TaskArrays arrays = task.arrays();
  RowMatrix queries(task.queries(), task.query_size());
  std::vector<Index> relaxed;
  std::vector<double> rhs;
  for (Index i = 0; i < task.queries(); ++i) {
    double b = 1 - beyond[static_cast<std::size_t>(i)] / margin;
    if (b < kNothing) {
      b = 0;
      relaxed.push_back(i);
    }
    rhs.push_back(b);
    queries.row(i) = task.query(i) / (b > 0 ? b : 1);
  }
  arrays.query_token = {};
  arrays.queries = Array::own(queries);
  return {.task = AttentionTask(std::move(arrays)), .relaxed = std::move(relaxed), .rhs = std::move(rhs)};
}

}  // namespace

std::vector<double> beyond_margin(const MarginSolution& head, double ratio) {
  std::vector<double> beyond;
  for (const double slack : head.slack) {
    beyond.push_back(slack > kSupportTolerance ? ratio * slack / head.objective : 0);
  }
  return beyond;
}

JointSvm solve_joint_svm(const AttentionTask& task, const Selection& selection, std::span<const double> beyond,
                         const std::function<MarginSolution(const MarginProblem&)>& solve) {
  const auto solve_at = [&](double margin) {
    JointSvm found = with_margin(task, beyond, margin);
    found.weights = solve(MarginProblem::attention(found.task, selection, found.relaxed));
    return found;
  };
  // Ξ‖W(Ξ)‖ is the least norm with right-hand sides max(0, Ξ − beyond_i). It grows with Ξ, is convex, and is 1 where Ξ
  // is correct. That Ξ lies between the smallest positive entry of `beyond`, below which only the right-hand sides of
  // support vectors are above 0, and the margin of this relaxed problem.
  double low = std::numeric_limits<double>::infinity();
  for (const double one : beyond) low = one > 0 ? std::min(low, one) : low;
  JointSvm relaxed = solve_at(low);
  if (relaxed.weights.status != MarginStatus::optimal || !(relaxed.weights.objective > 0)) return relaxed;
  double high = 1 / relaxed.weights.objective;
  if (!(low < high)) return relaxed;
  double below = low / high - 1, above = 0;  // Ξ‖W(Ξ)‖ − 1 at both ends; 0 if there is no W
  double margin = high;
  int side = 0;
  for (int k = 0; k < kMostSolves; ++k) {
    JointSvm found = solve_at(margin);
    const bool none = found.weights.status == MarginStatus::infeasible;
    if (found.weights.status != MarginStatus::optimal && !none) return found;
    const double excess = none ? 0 : margin * found.weights.objective - 1;
    if (!none && (excess <= 0 ? k == 0 || excess >= -kExact : excess <= kExact)) return found;
    if (none || excess > 0) {
      high = margin;
      above = excess;
      if (side > 0) below /= 2;  // Illinois: an end that stays twice loses weight
      side = 1;
    } else {
      low = margin;
      below = excess;
      if (side < 0) above /= 2;
      side = -1;
    }
    margin = above > 0 ? low + (high - low) * below / (below - above) : 0.5 * (low + high);
    if (!(low < margin && margin < high)) break;
  }
  return solve_at(low);
}

}  // namespace attsvm::internal
