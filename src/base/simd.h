#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace attsvm::internal {

// Vector loops of attsvm. Each is compiled for several instruction sets, one of which is chosen at run time.

/// The instruction set that these loops use on this machine, for example "AVX2".
std::string chosen_instructions();

/// All instruction sets that the binary has code for and this machine supports, best first.
std::vector<std::string> available_instructions();

/// Position of the first NaN or infinity; numbers.size() when all are finite.
std::size_t first_nonfinite(std::span<const double> numbers);

/// The same for single precision.
std::size_t first_nonfinite(std::span<const float> numbers);

}  // namespace attsvm::internal
