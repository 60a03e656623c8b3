#pragma once

#include <span>
#include <string_view>

#include "attsvm/audit.h"

namespace attsvm::internal {

/// The name of an array in files of heads, and where HeadArrays has it.
struct HeadField {
  std::string_view name;
  Array HeadArrays::*member;
};

/// All arrays of a set of heads, in the order of files.
std::span<const HeadField> head_fields();

}  // namespace attsvm::internal
