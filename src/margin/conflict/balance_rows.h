#pragma once

#include <vector>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// ‖Σ λ_k a_k‖ relative to Σ |λ_k| ‖a_k‖, computed from the differences of tokens; 1 if λ = 0 or Σ b_k λ_k ≤ 0. If it
/// is at the level of rounding, λ proves that the rows conflict.
double imbalance(const MarginProblem& problem, const Eigen::VectorXd& lambda);

/// Searches among few rows (ascending, none of them zero) for multipliers of the right sign with Σ λ_k a_k = 0 and
/// Σ b_k λ_k > 0, at most d·dz + 1 of them: nonnegative least squares by Lawson and Hanson. Returns their imbalance.
double balance_rows(const MarginProblem& problem, const std::vector<Index>& rows, Eigen::VectorXd& lambda);

}  // namespace attsvm::internal
