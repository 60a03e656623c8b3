#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "attsvm/hierarchy.h"

namespace attsvm::internal {

/// What is said about the heads of a stack: fields of `attsvm stack --json`, of `attsvm check --json`, and what Python
/// reads.
nlohmann::ordered_json hierarchy_json(std::span<const StackRecord> records, const std::vector<HeadMargin>& heads,
                                      const HierarchySettings& settings);

}  // namespace attsvm::internal
