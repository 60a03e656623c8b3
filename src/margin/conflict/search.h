#pragma once

#include <functional>

#include "attsvm/margin.h"

namespace attsvm::internal {

/// The result of a search for a proof that the rows of a problem conflict, or for a W that meets them. Any number of
/// rows.
///
/// Minimises ½ Σ (b_k − a_k·W)₊² over unit rows (equalities: the whole square) by Newton's method, each step by
/// conjugate gradients. If no W meets the rows, λ = (b − a·W)₊ at the minimum has Σ λ_k a_k = 0 and Σ b_k λ_k >
/// 0: Farkas' certificate.
struct ConflictSearch {
  enum class Outcome : std::uint8_t {
    separable,  ///< W meets every row
    conflict,   ///< λ is the proof
    stopped,    ///< asked to stop, or neither was found
  };
  Outcome outcome = Outcome::stopped;
  RowMatrix W;             ///< separable: meets the rows; else the last point
  Eigen::VectorXd lambda;  ///< conflict: multipliers, in any scale; else zero
  Index iterations = 0;
};

ConflictSearch search_conflict(const MarginProblem& problem, Threads& threads, const std::function<bool()>& stop);

}  // namespace attsvm::internal
