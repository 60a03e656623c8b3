#pragma once

#include <span>
#include <string_view>

#include "attsvm/margin.h"

namespace attsvm::test {

/// A small task that is hard to solve, and the problem to solve on it.
struct NastyTask {
  AttentionTask task;
  std::vector<Index> relax{};
  bool value_problem = false;

  MarginProblem problem() const;
};

/// Duplicates, integers, near conflicts, mixed scales, sets, relaxed rows, causal masks, …
std::span<const std::string_view> nasty_classes();
NastyTask nasty_task(std::string_view name, std::uint64_t seed);

}  // namespace attsvm::test
