#pragma once

#include "attsvm/train.h"

namespace attsvm {

/// What a trained head does when each query takes the token of its largest weight alone, as a router does.
struct HardSelection {
  double loss = 0;      ///< mean ℓ(y_i h(v_i)) over the selected tokens; in next-token tasks NaN
  double accuracy = 0;  ///< share of queries with y_i h(v_i) > 0; in next-token tasks those that select their label
};

/// `map` is that of the task at the trained W. The task's own head is replaced by `head`.
HardSelection hard_selection(const AttentionTask& task, const Head& head, Loss loss, const AttentionMap& map);

/// The mean over queries of the entropy −Σ_t s_t log s_t of their attention, relatively accurate however small it is.
/// In next-token tasks each position counts for itself.
double mean_entropy(const AttentionTask& task, const RowMatrix& W, Threads& threads);

/// The same from the weights of a task that is not a next-token one.
double mean_entropy(const AttentionMap& map);

/// The temperature of step number `step` (from 0) of a run; after the last step, the second number of the setting.
double scheduled_temperature(const TrainSettings& settings, Index step);

}  // namespace attsvm
