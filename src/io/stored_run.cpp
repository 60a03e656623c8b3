#include <libdeflate.h>

#include "attsvm/files.h"
#include "base/refuse.h"
#include "task/task_fields.h"

namespace attsvm {

using namespace internal;

namespace {

Array real_array(const NpzFile& file, const std::string& name, Index rank, Threads& threads) {
  const Array array = file.read(name, threads);
  if (array.scalar == Scalar::character || array.rank() != rank) {
    refuse("{}: {} has shape {}; must have {} sizes", file.path(), name, shape_text(array.shape), rank);
  }
  Array numbers = to_f64(array);
  with_place(file.path(), [&] { require_finite(numbers, name); });
  return numbers;
}

/// One number per recorded point, possibly infinite; empty if the file has none.
std::vector<double> record_list(const NpzFile& file, const std::string& name, std::size_t records, Threads& threads) {
  if (!file.has(name)) return {};
  const Array array = file.read(name, threads);
  if (array.scalar == Scalar::character || array.rank() != 1 || array.size() != static_cast<Index>(records)) {
    refuse("{}: {} has shape {}; must have one number per point of record_W, {} in all", file.path(), name,
           shape_text(array.shape), records);
  }
  const Array numbers = to_f64(array);
  return {f64_span(numbers).begin(), f64_span(numbers).end()};
}

}  // namespace

StoredRun load_run(const std::string& path, Threads& threads) {
  const NpzFile file(path);
  StoredRun run;
  if (!file.has("W")) refuse("{}: W is missing; a run must have it", path);
  if (file.has("dual")) refuse("{}: array 'dual' does not belong to a run; this looks like a solution file", path);
  const Array W = real_array(file, "W", 2, threads);
  run.W = ConstRows(f64_span(W).data(), W.shape[0], W.shape[1]);
  if (file.has("settings"))
    run.settings = with_place(path, [&] { return to_text(file.read("settings", threads), "settings"); });
  if (file.has("v")) {
    const Array v = real_array(file, "v", 1, threads);
    run.v = ConstVector(f64_span(v).data(), v.shape[0]);
  }
  if (file.has("task_fingerprint")) {
    const Array stored = file.read("task_fingerprint", threads);
    const auto numbers = with_place(path, [&] { return to_indices(stored, "task_fingerprint"); });
    if (stored.rank() != 0)
      refuse("{}: task_fingerprint has shape {}; must be a single number", path, shape_text(stored.shape));
    run.task_fingerprint = numbers.front();
  }
  if (!file.has("record_W")) return run;
  run.numbers = real_array(file, "record_W", 3, threads);
  const auto& shape = run.numbers.shape;
  if (shape[1] != run.W.rows() || shape[2] != run.W.cols()) {
    refuse("{}: record_W has shape {}; must be (r,{},{}) as W is", path, shape_text(shape), run.W.rows(), run.W.cols());
  }
  for (Index r = 0; r < shape[0]; ++r) {
    run.record.emplace_back(f64_span(run.numbers).data() + r * shape[1] * shape[2], shape[1], shape[2]);
  }
  if (file.has("record_step")) {
    const Array steps = file.read("record_step", threads);
    run.record_step = with_place(path, [&] { return to_indices(steps, "record_step"); });
    if (run.record_step.size() != run.record.size()) {
      refuse("{}: record_step has {} entries and record_W {}", path, run.record_step.size(), run.record.size());
    }
  }
  run.record_loss = record_list(file, "record_loss", run.record.size(), threads);
  run.record_log_gradient = record_list(file, "record_log_gradient", run.record.size(), threads);
  return run;
}

RunTrace trace_of(const StoredRun& run) {
  return {.W = run.W,
          .record = run.record,
          .steps = run.record_step,
          .implied = implied_norm_of_words(run.settings),
          .settings = run.settings};
}

Index fingerprint_of(const AttentionTask& task) {
  std::uint32_t sum = 0;
  const auto add = [&](const void* data, std::size_t size) { sum = libdeflate_crc32(sum, data, size); };
  for (const TaskField& field : task_fields()) {
    if (field.member == &TaskArrays::select) continue;
    const Array& array = task.arrays().*field.member;
    if (!array.given()) continue;
    add(field.name.data(), field.name.size());
    add(array.shape.data(), array.shape.size() * sizeof(Index));
    add(array.data, static_cast<std::size_t>(array.bytes()));
  }
  return sum;
}

void require_run_of(const AttentionTask& task, const StoredRun& run) {
  if (run.W.rows() != task.key_size() || run.W.cols() != task.query_size()) {
    refuse("W has shape ({},{}); the task needs ({},{})", run.W.rows(), run.W.cols(), task.key_size(),
           task.query_size());
  }
  if (run.task_fingerprint && *run.task_fingerprint != fingerprint_of(task))
    refuse("is a run of another task: task_fingerprint = {}; the task's is {}", *run.task_fingerprint,
           fingerprint_of(task));
}

AttentionTask with_head(const AttentionTask& task, const Eigen::VectorXd& v) {
  TaskArrays arrays = task.arrays();
  arrays.head = Array::own(std::vector<double>(v.begin(), v.end()), {v.size()});
  return AttentionTask(std::move(arrays));
}

}  // namespace attsvm
