#pragma once

#include "attsvm/train.h"

namespace attsvm::internal {

/// Throws InputError with the setting, its value and the rule unless the settings can be used for this task.
void require_usable(const TrainSettings& settings, const AttentionTask& task);

}  // namespace attsvm::internal
