#pragma once

#include <string>

#include "attsvm/files.h"

namespace attsvm::internal {

/// As attsvm::load_start for a run with these settings: of many heads the arrays may have one entry per head.
Start load_start(const std::string& path, const TrainSettings& settings, Threads& threads);

}  // namespace attsvm::internal
