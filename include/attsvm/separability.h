#pragma once

#include <string>

#include "attsvm/task.h"

namespace attsvm {

/// The sufficient condition under which a generic task is separable for every selection: enough key coordinates for
/// the tokens that a query must be told apart from, and linearly independent queries (for prompt attention, where all
/// queries are the same vector, enough coordinates for all of them together). A task may be separable without it.
struct SeparabilityCondition {
  bool holds = false;
  Index needed_key_size = 0;  ///< what the condition asks of d; a task may be separable with less
  Index query_rank = 0;       ///< rank of the query vectors; counted only where it can decide (q ≤ dz), else 0
  std::string reason;         ///< in words
};

SeparabilityCondition separability_condition(const AttentionTask& task);

}  // namespace attsvm
