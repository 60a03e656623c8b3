#pragma once

#include <chrono>

#include "attsvm/files.h"

namespace attsvm::internal {

/// Saves the state of a run in the journal of its file from time to time.
class Checkpoints {
 public:
  explicit Checkpoints(double seconds) : seconds_(seconds) {}

  /// To be called before every step, by TrainSettings::progress.
  void offer(const Trainer& trainer, RunFile& file) {
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - saved_at_).count() < seconds_) return;
    file.checkpoint(trainer.state());
    saved_at_ = now;
  }

 private:
  double seconds_;
  std::chrono::steady_clock::time_point saved_at_ = std::chrono::steady_clock::now();
};

/// Takes the trainer to where the run in the file's journal was. Returns its step; −1 if the run begins at its start.
inline Index resume(const RunFile& file, Trainer& trainer) {
  if (file.resumed_state().empty()) return -1;
  trainer.restore(file.resumed_state());
  return trainer.step();
}

/// Trains until the run ends. The file keeps the records, and the state if the run was asked to stop.
inline TrainStop train_into(RunFile& file, Trainer& trainer) {
  const TrainStop stop = trainer.run([&](const Record& record) { file.keep(record); });
  if (stop == TrainStop::asked) file.checkpoint(trainer.state());
  return stop;
}

}  // namespace attsvm::internal
