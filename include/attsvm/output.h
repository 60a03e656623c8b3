#pragma once

#include <string>

namespace attsvm {

/// InputError if an output file may not be written: it exists and `replace` is false, or its folder does not exist.
/// To be called before long work; writing checks again.
void require_writable(const std::string& path, bool replace);

}  // namespace attsvm
