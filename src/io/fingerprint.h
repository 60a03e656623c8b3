#pragma once

#include "attsvm/files.h"

namespace attsvm::internal {

/// A number that tells arrays apart: the CRC-32 of their names, shapes and numbers in C order.
Index fingerprint_of(const NamedArrays& arrays);

}  // namespace attsvm::internal
