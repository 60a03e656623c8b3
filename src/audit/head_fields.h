#pragma once

#include <span>

#include "attsvm/audit.h"
#include "base/array_field.h"

namespace attsvm::internal {

using HeadField = ArrayField<HeadArrays>;

/// All arrays of a set of heads, in the order of files.
std::span<const HeadField> head_fields();

}  // namespace attsvm::internal
