#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attsvm/margin.h"

namespace attsvm {

/// The problem that weights tend to, to leading order, while a head is trained beside them. With ‖W‖ = R, ‖v‖ = r, f_i
/// the unit head's value of input i's selected token and Γ the least of them, attention leaks about
/// e^{−r f_i − R m_i(W)} of input i, m_i(W) its margin for W of norm 1. The leak is least where
/// min_i [R m_i + r(f_i − Γ)] is largest, and that is the SVM with right-hand sides b_i = max(0, 1 − r(f_i − Γ)/(RΞ)),
/// Ξ = 1/‖W‖ being the margin of its own answer.
///
/// b_i > 0 is the same as a query z_i/b_i with right-hand side 1, b_i = 0 the same as a relaxed query, so that the
/// answer is one of an ordinary task, and verify() can judge it.
struct JointSvm {
  AttentionTask task;            ///< with queries z_i/b_i
  std::vector<Index> relaxed{};  ///< queries with b_i = 0
  std::vector<double> rhs{};     ///< b_i
  MarginSolution weights{};      ///< of MarginProblem::attention(task, selection, relaxed)
};

/// `beyond` has a number of at least 0 for every query: r(f_i − Γ)/R. `solve` fills in the solution of a problem in the
/// norm wanted; where one of its answers is not optimal, that one is returned.
JointSvm solve_joint_svm(const AttentionTask& task, const Selection& selection, std::span<const double> beyond,
                         const std::function<void(const MarginProblem&, MarginSolution&)>& solve);

/// r(f_i − Γ)/R for the solution of a v problem of one row for each query; `ratio` = r/R. Support vectors get 0.
std::vector<double> beyond_margin(const MarginSolution& head, double ratio);

}  // namespace attsvm
