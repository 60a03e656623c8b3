#pragma once

#include "attsvm/theory.h"
#include "report/plane.h"

namespace attsvm::internal {

/// What a reader can do about tokens that no W keeps: `relax`, the fewest queries found whose rows must become ≥ 0
/// (null where nothing short of all of them helps); `leave`, the fewest found without which a W keeps the rest; and
/// `instead`, a token for each of the latter with which a W keeps them all (null where a query keeps several tokens).
/// All of it was solved and verified. Null where the tokens can be kept, or the problem is too large to search.
Json way_out_json(const AttentionTask& task, const Check& check, Threads& threads);

}  // namespace attsvm::internal
