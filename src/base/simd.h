#pragma once

#include <cstddef>
#include <span>

namespace attsvm {

// Vector loops of our own. One body each, compiled for several instruction sets, chosen at run time.

/// Position of the first NaN or infinity; numbers.size() when all are finite.
std::size_t first_nonfinite(std::span<const double> numbers);

/// The same for single precision.
std::size_t first_nonfinite(std::span<const float> numbers);

}  // namespace attsvm
