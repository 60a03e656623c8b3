#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// The problem whose solution the weights tend to, to leading order, when a head is trained with them. With ‖W‖ = R,
/// ‖v‖ = r, f_i the unit head's value of input i's selected token and Γ the least of them, attention leaks about
/// e^{−r f_i − R m_i(W)} of input i, m_i(W) its margin for W of norm 1. The leak is least where
/// min_i [R m_i + r(f_i − Γ)] is largest, and that is the SVM with right-hand sides b_i = max(0, 1 − r(f_i − Γ)/(RΞ)),
/// where Ξ = 1/‖W‖ is the margin of its own solution.
///
/// b_i > 0 is equivalent to a query z_i/b_i with right-hand side 1, and b_i = 0 to a relaxed query. So the solution is
/// one of an ordinary task, and verify() can check it.
struct JointSvm {
  AttentionTask task;            ///< with queries z_i/b_i
  std::vector<Index> relaxed{};  ///< queries with b_i = 0
  std::vector<double> rhs{};     ///< b_i
  MarginSolution weights{};      ///< of MarginProblem::attention(task, selection, relaxed)
};

/// `beyond` has one number of at least 0 per query: r(f_i − Γ)/R. `solve` solves a problem in the norm wanted;
/// where one of its answers is not optimal, that one is returned.
JointSvm solve_joint_svm(const AttentionTask& task, const Selection& selection, std::span<const double> beyond,
                         const std::function<MarginSolution(const MarginProblem&)>& solve);

/// r(f_i − Γ)/R for the solution of a v problem with one row per query; `ratio` = r/R. Support vectors get 0.
std::vector<double> beyond_margin(const MarginSolution& head, double ratio);

}  // namespace attsvm::internal
