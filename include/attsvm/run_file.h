#pragma once

#include <memory>
#include <string>

#include "attsvm/npz.h"
#include "attsvm/train.h"

namespace attsvm {

/// Reads where a run begins: W0 (d,dz) or (d), K0 (d,r), Q0 (dz,r), v0; other arrays are not read. InputError names
/// file and array; a file that holds none that this parametrization uses is refused.
Start load_start(const std::string& path, Parametrization param, Threads& threads);

/// What the file of a run holds whose records are all in memory, as train() leaves them. `map` is the attention at
/// run.W.
NamedArrays run_arrays(const AttentionTask& task, const TrainSettings& settings, const TrainedRun& run,
                       const AttentionMap& map, Threads& threads);

/// A run on its way to its file. Records that no longer fit into a little memory, and the state of the run now and
/// then, go to a journal beside the file (docs/formats.md); a killed run loses what came after the last state.
class RunFile {
 public:
  struct Options {
    bool replace = false;  ///< an existing file, and the journal of another run
    bool resume = false;   ///< take up the run whose journal is there; it may replace the file
  };

  /// The trainer is at its start: together with task and settings this tells runs apart. InputError if the file may not
  /// be written, if a journal is there and neither resume nor replace is set, or if the journal
  /// is of another run or damaged.
  RunFile(const std::string& path, const AttentionTask& task, const TrainSettings& settings, const Trainer& trainer,
          const Options& options);
  ~RunFile();

  /// The state to go on from; empty: from the start.
  const std::vector<double>& resumed_state() const;

  void keep(const Record& record);
  /// To be called between steps, after the record that is due there.
  void checkpoint(const std::vector<double>& state);

  /// Writes the file. A run that may go on leaves its journal; `map` is the attention at run.W.
  void finish(const TrainedRun& run, const AttentionMap& map, bool may_go_on, Threads& threads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attsvm
