#pragma once

#include <string>
#include <vector>

#include "attsvm/path.h"

namespace attsvm {

/// Writes a regularization path, one entry of every array a radius (docs/formats.md).
void save_path(const std::string& path, const std::vector<PathPoint>& points, bool replace);

}  // namespace attsvm
