#pragma once

#include "attsvm/array.h"

namespace attsvm::internal {

/// What an array remembers of a check of its numbers. Reading a file finds out in the pass that computes the checksum,
/// which spares a second pass over large arrays.
struct FiniteMark {
  static bool of(const Array& array) { return array.known_finite_; }
  static void set(Array& array, bool finite) { array.known_finite_ = finite; }
};

}  // namespace attsvm::internal
