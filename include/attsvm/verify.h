#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attsvm/margin.h"

namespace attsvm {

/// An answer as its file holds it: everything that is claimed, and nothing that has to be believed.
struct StoredSolution {
  std::string norm = "fro", problem = "att", status;
  RowMatrix W;
  RowMatrix K, Q;            ///< (d,r), (dz,r), of nuclear answers
  bool has_factors = false;  ///< K and Q are there
  std::vector<Index> row_query, row_keep, row_drop;
  std::vector<bool> row_equal;
  std::vector<double> rhs, slack, dual;
  double tolerance = 0, objective = 0, dual_objective = 0;
  Array select;             ///< (q,longest) bool
  std::vector<bool> relax;  ///< (q)
  bool w_only = false;      ///< another solver's answer: there is nothing but W
};

StoredSolution stored(const MarginProblem& problem, const MarginSolution& solution, double tolerance);

/// Gives an answer that is W alone what it is judged against: the task's own selection, else the optimal tokens, and no
/// relaxed query. InputError if the task has neither selection nor head. Other answers stay as they are.
void complete(const AttentionTask& task, StoredSolution& solution);

/// What a warm start takes from a stored answer: its multipliers, and W. InputError if its norm is none.
MarginSolution warm_start_from(const StoredSolution& solution);

struct Verification {
  bool valid = false;
  std::string status, reason;  ///< reason: why not valid
  // Recomputed from the task; NaN where the claim has none (a certificate has no W, W alone no bound).
  double objective = 0, dual_objective = 0, gap = 0, violation = 0;
  double residual = 0;  ///< ‖A(dual)‖_F of a certificate
};

/// Recomputes every claim from the raw arrays, in extended precision and with code that shares nothing with the
/// solvers. Valid: rows as the task and the selection give them, violation ≤ 1e-9 (times the largest |rhs|), dual signs
/// right, objective, bound and slack as stated to 1e-9 (nuclear: W = KQᵀ and KᵀK = QᵀQ too), gap within the tolerance
/// unless the status is `limit`; for a certificate Σ rhs·dual = 1 and ‖A(dual)‖_F ≤ 1e-12 Σ |dual| ‖δ‖ ‖ζ‖.
Verification verify(const AttentionTask& task, const StoredSolution& solution);

}  // namespace attsvm
