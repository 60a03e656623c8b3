#pragma once

#include "attsvm/train.h"

namespace attsvm {

/// InputError names the setting, its value and the rule, where the settings make no sense for this task.
void require_usable(const TrainSettings& settings, const AttentionTask& task);

}  // namespace attsvm
