#pragma once

#include <string>

#include "attsvm/threads.h"
#include "verify/shared_claim.h"

namespace attsvm::internal {

/// The queries of a rank: those from number `first` on, of so many.
struct SharedQueries {
  const AttentionTask* task;
  Index first, queries;
};

/// Of a solution file what concerns these queries, as load_solution() and completed() give the whole. InputError names
/// the file and the array.
SharedClaim load_claim(const std::string& path, const SharedQueries& part, Threads& threads);

}  // namespace attsvm::internal
