#pragma once

#include <string>
#include <vector>

#include "attsvm/npz.h"
#include "attsvm/path.h"

namespace attsvm {

/// What the file of a regularization path holds; `points` has at least one.
NamedArrays path_arrays(const std::vector<PathPoint>& points);

/// Writes a regularization path, one entry of every array a radius (docs/formats.md).
void save_path(const std::string& path, const std::vector<PathPoint>& points, bool replace);

}  // namespace attsvm
