#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attsvm/array.h"
#include "attsvm/task.h"
#include "attsvm/theory.h"
#include "attsvm/threads.h"
#include "attsvm/train.h"
#include "attsvm/verify.h"

namespace attsvm {

/// A NumPy .npz file opened for reading. The constructor reads only the directory at the end of the file.
class NpzFile {
 public:
  /// Opens the file. InputError names the file and what is wrong with it.
  explicit NpzFile(const std::string& path);
  ~NpzFile();
  NpzFile(NpzFile&&) noexcept;  ///< the other one may only be destroyed then

  const std::string& path() const;          ///< as given to the constructor
  std::vector<std::string> names() const;   ///< names of the arrays, in the order of the file
  bool has(const std::string& name) const;  ///< whether the file has an array of this name

  /// Reads an array and checks its CRC-32. Numbers that are stored uncompressed and aligned for their type stay in the
  /// mapped file, all others are copied once; the array keeps that memory alive. InputError if there is no
  /// such array or it is damaged.
  Array read(const std::string& name, Threads& threads) const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

/// The array in a .npy file: a view of the mapped file, which the array keeps open. InputError names the file and what
/// is wrong with it.
Array read_npy(const std::string& path);

/// Arrays with the names that a file gives them, in the order of the file.
using NamedArrays = std::vector<std::pair<std::string, Array>>;

/// Writes arrays to one .npz file, uncompressed, in C order and aligned for mapping. The file appears complete or not
/// at all, and the same arrays give the same bytes. InputError if the file exists and `replace` is false, or if it
/// cannot be written.
void write_npz(const std::string& path, const NamedArrays& arrays, bool replace);

/// A safetensors file opened for reading. The constructor parses the header and checks every bound in it; the tensors
/// stay in the mapped file.
class SafetensorsFile {
 public:
  /// Opens the file. InputError names the file and what is wrong with it.
  explicit SafetensorsFile(const std::string& path);

  /// All tensors by name. Each is a view of the mapped file and keeps it open. It may be unaligned, which to_f64
  /// accepts.
  const std::map<std::string, Array>& tensors() const { return tensors_; }
  /// The tensor of this name. InputError if there is none.
  const Array& tensor(const std::string& name) const;
  /// The entries of the header's __metadata__: free text by name.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::string path_;
  std::map<std::string, Array> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Reads a task file (docs/formats.md). InputError names the file, the array, the place and the rule. Arrays whose
/// names start with x_ are not read; any other unknown name is an InputError.
AttentionTask load_task(const std::string& path, Threads& threads);

/// The arrays of a task file.
NamedArrays task_arrays(const AttentionTask& task);

/// Writes a task file. `extras` are further arrays, whose names must start with x_. InputError as for write_npz.
void save_task(const std::string& path, const AttentionTask& task, const std::map<std::string, Array>& extras,
               bool replace);

/// The arrays of a solution file (docs/formats.md).
NamedArrays solution_arrays(const StoredSolution& solution);

/// The inverse of solution_arrays. Ignores arrays of other names; sets w_only if there is W alone. InputError names the
/// array.
StoredSolution solution_from(const NamedArrays& arrays);

/// Writes a solution file. InputError as for write_npz.
void save_solution(const std::string& path, const StoredSolution& solution, bool replace);

/// Reads a solution file, or a file that holds W alone. InputError names the file and the array.
StoredSolution load_solution(const std::string& path, Threads& threads);

/// What attsvm reads from the file of a training run. Here r is the number of recorded points.
struct StoredRun {
  std::string settings;             ///< in words, as from words_of(); empty if the file has none
  RowMatrix W;                      ///< (d,dz), where the run ended
  Eigen::VectorXd v;                ///< the head's v at the end; empty unless it was trained or is of many heads
  Index heads = 1;                  ///< H; many: W and each recorded W are (H·d,dz), v is (H·dv); see head_of()
  std::vector<Index> record_step;   ///< (r) steps taken before each recorded point
  std::vector<ConstRows> record;    ///< (r) each recorded W, (d,dz): views of `numbers`
  std::vector<double> record_loss;  ///< (r) as in Record; empty if the file has none
  std::vector<double> record_log_gradient;  ///< (r) as in Record; empty if the file has none
  RowMatrix record_v;                       ///< (r,dv) each recorded v; empty if the file has none; many: (r,H·dv)
  Array numbers;                            ///< the memory that `record` points to
  std::optional<Index> task_fingerprint;    ///< fingerprint_of() the trained task, if the file has it
};

/// Reads W from the file of a run and, if they are there, settings, v, task_fingerprint and the record arrays.
/// InputError names the file and the array.
StoredRun load_run(const std::string& path, Threads& threads);

/// Head h of a run of many heads, as a run of its own: the same steps and losses, with the W and v of that head.
StoredRun head_of(const StoredRun& run, Index head);

/// The run itself if it has one head, else the head asked for. InputError, which calls the choice `option`, unless
/// there is such a head, and unless one is chosen where there are many.
StoredRun head_of(const StoredRun& run, std::optional<Index> head, const std::string& option);

/// What check_run needs to know about the run: its points, and the norm that its settings name. Views of `run`.
RunTrace trace_of(const StoredRun& run);

/// A number that tells tasks apart: the CRC-32 of the contents of their arrays. `select` does not count, because
/// training does not read it, nor do the number types and layouts in the file.
Index fingerprint_of(const AttentionTask& task);

/// InputError unless the run can be one on this task: the sizes of W fit, and so does the fingerprint if there is one.
void require_run_of(const AttentionTask& task, const StoredRun& run);

/// The task with the linear head v instead of its own. A run that trained its head is judged with this.
AttentionTask with_head(const AttentionTask& task, const Eigen::VectorXd& v);

/// The task with one v of those that its `head` has per head of attention. InputError, which calls the choice `option`,
/// unless there is such a head.
AttentionTask with_head(const AttentionTask& task, Index head, const std::string& option);

/// Reads the starting point of a run: W0 (d,dz) or (d), K0 (d,r), Q0 (dz,r) and v0. Other arrays are not read.
/// InputError names the file and the array. Also InputError if the file has no array that this parametrization uses.
Start load_start(const std::string& path, Parametrization param, Threads& threads);

/// The arrays of the file of a run that has all its records in memory, as train() returns it. `map` is the attention at
/// run.W.
NamedArrays run_arrays(const AttentionTask& task, const TrainSettings& settings, const TrainedRun& run,
                       const AttentionMap& map, Threads& threads);

/// Writes the file of a run while the run goes on. Records beyond a small amount of memory, and from time to time the
/// state of the run, go to a journal next to the file (docs/formats.md). A killed run can be resumed from the last
/// state in the journal.
class RunFile {
 public:
  /// What to do with files that are there already.
  struct Options {
    bool replace = false;  ///< overwrite an existing file, and the journal of another run
    bool resume = false;   ///< continue the run whose journal is there; it may overwrite the file
  };

  /// `trainer` must be at its start: its state, the task and the settings tell runs apart. InputError if the file may
  /// not be written, if there is a journal and neither resume nor replace is set, or if the journal is damaged or
  /// belongs to another run.
  RunFile(const std::string& path, const AttentionTask& task, const TrainSettings& settings, const Trainer& trainer,
          const Options& options);
  /// The same for a task whose queries other processes share; for the program.
  RunFile(const std::string& path, const internal::SharedTask& task, const TrainSettings& settings,
          const Trainer& trainer, const Options& options);
  ~RunFile();

  /// The state to give to Trainer::restore; empty if the run begins at its start.
  const std::vector<double>& resumed_state() const;

  /// Adds a record, to be called in the order of steps.
  void keep(const Record& record);
  /// Offers Trainer::state() for the journal. To be called between steps, after keep() of the record that is due there.
  void checkpoint(const std::vector<double>& state);

  /// Writes the file. Keeps the journal if the run `may_go_on`, else removes it. `map` is the attention at run.W.
  void finish(const TrainedRun& run, const AttentionMap& map, bool may_go_on, Threads& threads);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The arrays of the file of a regularization path; `points` must not be empty.
NamedArrays path_arrays(const std::vector<PathPoint>& points);

/// Writes a regularization path: every array has one entry per radius (docs/formats.md). InputError as for write_npz.
void save_path(const std::string& path, const std::vector<PathPoint>& points, bool replace);

}  // namespace attsvm
