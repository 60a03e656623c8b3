#pragma once

#include <string_view>

#include "attsvm/array.h"

namespace attsvm::internal {

/// The name of an array in files, and the member of a structure that holds it.
template <class Arrays>
struct ArrayField {
  std::string_view name;
  Array Arrays::*member;
};

}  // namespace attsvm::internal
