// The rules that an answer has to keep. Each is a function, and refuses with a reason of its own.
#pragma once

#include "verify/arithmetic.h"

namespace attsvm::proof {

/// One claim before its judge: throws Refusal, or Undecided where the arithmetic is too coarse.
struct Case {
  const Question& question;
  const StoredSolution& claim;
  const VerifySettings& settings;
  const Norm& norm;
  Arithmetic& arithmetic;
  Verification& result;
};

// Rules that need no arithmetic.
void require_tolerance(const StoredSolution& claim);  // 6: the file's own is a number that makes sense
void require_multipliers(const Question& question, const StoredSolution& claim);  // 2: finite, signs
void require_matrix(const Question& question, const StoredSolution& claim);       // 3: W finite, of the right shape
void require_factors(const Question& question,
                     const StoredSolution& claim);  // 8: K, Q there, finite, of the right shape
void require_nothing(const Question& question, const StoredSolution& claim);  // 9: an infeasible file holds no W

void judge_rows(const Case& on);         // 3 and 4: every row is met, slacks are as stated
void judge_nearby(const Case& on);       // 11: an optimum is near a W that meets the rows that ask for 0
void judge_objective(const Case& on);    // 4: ‖W‖ is as stated
void judge_factors(const Case& on);      // 8: W = K Qᵀ, KᵀK = QᵀQ, no column too many
void judge_bound(const Case& on);        // 4 to 7: what the multipliers prove, and how far ‖W‖ is from it
void judge_certificate(const Case& on);  // 9: what the multipliers prove without a W

}  // namespace attsvm::proof
