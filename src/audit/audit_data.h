#pragma once

#include <nlohmann/json.hpp>

#include "attsvm/audit.h"

namespace attsvm::internal {

/// What --json prints and Python reads: a list of heads (docs/formats.md).
nlohmann::ordered_json audit_json(const Audit& audit);

}  // namespace attsvm::internal
