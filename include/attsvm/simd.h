#pragma once

#include <string>
#include <vector>

namespace attsvm {

/// The vector instruction set our own loops run with on this machine, for example "AVX2".
std::string chosen_instructions();

/// All sets the binary carries code for and this machine has, best first.
std::vector<std::string> available_instructions();

}  // namespace attsvm
