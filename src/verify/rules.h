// The rules of docs/formats.md that an answer has to keep, with their names there. A function that finds a rule broken
// throws Refusal with the reason, or Undecided if the arithmetic is too coarse.
#pragma once

#include "verify/arithmetic.h"

namespace attsvm::internal::proof {

/// A claim, and what it is judged with.
struct Case {
  const Question& question;
  const StoredSolution& claim;
  const VerifySettings& settings;
  const Norm& norm;
  Arithmetic& arithmetic;
  Verification& result;
};

// Rules that need no arithmetic.
void require_tolerance(const StoredSolution& claim);                              // gap: tolerance in range
void require_multipliers(const Question& question, const StoredSolution& claim);  // multipliers: finite, signs
void require_matrix(const Question& question, const StoredSolution& claim);       // W: finite, of the right shape
void require_factors(const Question& question, const StoredSolution& claim);      // rank: K, Q finite, right shape
void require_nothing(const Question& question, const Norm& norm, const StoredSolution& claim);  // infeasible: no W

void judge_rows(const Case& on);         // W, numbers stated: every row is met, slacks are as stated
void judge_nearby(const Case& on);       // rows that ask for 0: a W that meets them is near an optimum
void judge_objective(const Case& on);    // numbers stated: ‖W‖
void judge_factors(const Case& on);      // rank: W = K Qᵀ, KᵀK = QᵀQ, every column is needed
void judge_bound(const Case& on);        // numbers stated, contradiction, gap, scaling: the bound of the multipliers
void judge_certificate(const Case& on);  // infeasible: what the multipliers prove without a W

}  // namespace attsvm::internal::proof
