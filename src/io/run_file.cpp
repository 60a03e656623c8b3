#include <libdeflate.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "attsvm/files.h"
#include "base/refuse.h"
#include "io/npz_writer.h"
#include "io/output.h"
#include "io/run_contents.h"
#include "io/run_journal.h"
#include "io/start_file.h"
#include "train/settings.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::size_t kMemory = std::size_t{1} << 20;  // doubles of records buffered before they go to the journal

std::uint64_t fingerprint_of_start(const std::vector<double>& state, const Eigen::VectorXd& v) {
  const std::uint32_t run = libdeflate_crc32(0, state.data(), state.size() * sizeof(double));
  return libdeflate_crc32(run, v.data(), static_cast<std::size_t>(v.size()) * sizeof(double));
}

RowMatrix to_matrix(const Array& given, const std::string& name, bool many_heads) {
  const Index most = many_heads ? 3 : 2;
  if (given.scalar == Scalar::character || given.rank() < 1 || given.rank() > most || given.size() < 1) {
    refuse("{} has shape {}; must be a matrix or a vector of numbers{}", name, shape_text(given.shape),
           many_heads ? ", or one per head" : "");
  }
  Array array = to_f64(given);
  require_finite(array, name);
  const Index cols = array.rank() > 1 ? array.shape.back() : 1;
  return ConstRows(f64_span(array).data(), array.size() / cols, cols);
}

}  // namespace

Start load_start(const std::string& path, Parametrization param, Threads& threads) {
  return internal::load_start(path, TrainSettings{.param = param}, threads);
}

Start internal::load_start(const std::string& path, const TrainSettings& settings, Threads& threads) {
  const bool many = settings.heads > 1;
  const NpzFile file(path);
  const auto read = [&](std::string name) -> RowMatrix {  // W0, or W, where a run ended
    if (!file.has(name)) name.pop_back();
    if (!file.has(name)) return {};
    const Array array = file.read(name, threads);
    return with_place(path, [&] { return to_matrix(array, name, many); });
  };
  Start start;
  const bool factors = settings.param == Parametrization::KQ;
  if (factors) {
    start.K = read("K0");
    start.Q = read("Q0");
  } else {
    start.W = read("W0");
  }
  const RowMatrix v = read("v0");  // with many heads one row each
  if (!many && v.cols() > 1) refuse("{}: v0 has shape ({},{}); must be a vector", path, v.rows(), v.cols());
  start.v = ConstVector(v.data(), v.size());
  if (start.W.size() + start.K.size() + start.Q.size() + start.v.size() == 0) {
    refuse("{}: has no array to start from; param = {} needs {}", path, name_of(settings.param),
           factors ? "K0 and Q0 (and v0)" : "W0 (and v0)");
  }
  return start;
}

struct RunFile::State {
  std::string path;
  SharedTask task;
  TrainSettings settings;
  bool replace;
  std::vector<double> first_state;
  Eigen::VectorXd first_v;
  std::size_t frame_size;
  std::vector<double> waiting{};  // frames that are not yet in the journal
  std::optional<RunJournal> journal{};
  std::vector<double> resumed{};

  std::string journal_path() const { return path + ".journal"; }
  void open_journal(bool resume) {
    journal.emplace(journal_path(),
                    RunJournal::Shape{journal_text(settings), fingerprint_of_start(first_state, first_v),
                                      static_cast<std::uint64_t>(fingerprint_of(task)), first_state.size(), frame_size},
                    resume);
  }
  void flush() {
    if (!journal) open_journal(false);
    for (std::size_t at = 0; at < waiting.size(); at += frame_size) journal->append(waiting.data() + at);
    waiting.clear();
  }
};

RunFile::RunFile(const std::string& path, const AttentionTask& task, const TrainSettings& settings,
                 const Trainer& trainer, const Options& options)
    : RunFile(path, SharedTask(task), settings, trainer, options) {}

RunFile::RunFile(const std::string& path, const SharedTask& shared, const TrainSettings& settings,
                 const Trainer& trainer, const Options& options) {
  const AttentionTask& task = *shared.part;
  const auto weights = static_cast<std::size_t>(settings.heads * task.key_size() * task.query_size());
  const auto head = static_cast<std::size_t>(settings.joint ? trainer.head().v.size() : 0);
  state_.reset(new State{path, shared, settings, options.replace || options.resume, trainer.state(), trainer.head().v,
                         kNumbers + weights + head});
  std::error_code ignored;
  const bool there = std::filesystem::exists(state_->journal_path(), ignored);
  if (there && !options.resume && !options.replace) {
    refuse("{}: left by an interrupted run; give --resume to continue it, or --force to start over",
           state_->journal_path());
  }
  require_writable(path, options.replace || (options.resume && there));
  if (!there) return;
  if (!options.resume) {
    std::filesystem::remove(state_->journal_path(), ignored);
    return;
  }
  state_->open_journal(true);
  const auto saved = state_->journal->saved();
  if (!saved) return;
  state_->resumed = saved->state;
  const double step = saved->state.front();
  const auto mapped = state_->journal->map();
  Index frames = saved->frames;  // the record at the state's own step is made again
  while (frames > 0 && state_->journal->frame(*mapped, frames - 1)[kStep] >= step) --frames;
  state_->journal->rewind(frames);
}

RunFile::~RunFile() = default;

const std::vector<double>& RunFile::resumed_state() const { return state_->resumed; }

void RunFile::keep(const Record& record) {
  append_frame(record, state_->waiting);
  if (state_->waiting.size() > kMemory) state_->flush();
}

void RunFile::checkpoint(const std::vector<double>& state) {
  state_->flush();
  state_->journal->save(state);
}

void RunFile::finish(const TrainedRun& run, const AttentionMap& map, bool may_go_on, Threads& threads) {
  State& my = *state_;
  if (my.journal) my.flush();
  const auto mapped = my.journal ? my.journal->map() : nullptr;
  const Index kept = my.journal ? my.journal->frames() : static_cast<Index>(my.waiting.size() / my.frame_size);
  const auto frame = [&](Index k) {
    return my.journal ? my.journal->frame(*mapped, k) : my.waiting.data() + static_cast<std::size_t>(k) * my.frame_size;
  };
  NpzWriter out(my.path, my.replace);
  write_run({my.task, my.settings, run, map, threads}, kept, frame, out);
  out.commit();
  if (my.journal && !may_go_on) my.journal->remove();
}

}  // namespace attsvm
