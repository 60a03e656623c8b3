#pragma once

#include <functional>
#include <span>

#include "device/cuda.h"
#include "device/entry_step.h"
#include "train/lane_runs.h"

namespace attsvm::internal {

/// A run that lanes can take, with what it needs and where its result goes.
struct DeviceEntrant {
  const AttentionTask& task;
  const Head& head;
  const LaneInput& input;
  const Parameters& start;
  TrainedRun& out;
  bool done = false;  ///< the GPU has trained it
};

/// What the GPU's kernels need to know of an optimizer that moves the entries of arrays, and of a step.
device::EntryRule entry_rule(const TrainSettings& settings, Index queries);
device::StepSize step_size(const StepRule& rule, const TrainSettings& settings, Index step);

/// The GPU for batches of runs with these settings, or null: if the threads are for the CPU alone, there is none, its
/// kernels do not know the optimizer, or (Device::automatic) this CPU has no fused multiply-add, so that results would
/// not have the same bits.
Cuda* device_for(const TrainSettings& settings, const Threads& threads);

/// Whether a batch of runs takes long enough on a CPU for Device::automatic to start the GPU.
bool worth_a_device(const LaneShape& shape, const TrainSettings& settings, std::size_t runs);

/// Trains runs of one shape on the GPU, with the bits of the CPU's lanes where those take them. The GPU may refuse, for
/// example because its memory is full; runs that are not done then are untouched.
void train_on_device(Cuda& cuda, const TrainSettings& settings, std::span<DeviceEntrant> entrants, Threads& threads);

}  // namespace attsvm::internal
