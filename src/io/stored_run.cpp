#include "io/stored_run.h"

#include <fmt/ranges.h>
#include <libdeflate.h>

#include <algorithm>
#include <array>

#include "base/refuse.h"
#include "io/fingerprint.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array kRunArrays{"W",
                                "dual",
                                "settings",
                                "v",
                                "task_fingerprint",
                                "record_W",
                                "record_step",
                                "record_loss",
                                "record_log_gradient",
                                "record_v"};

/// The array of this name; not given() if there is none.
Array find_array(const NamedArrays& arrays, std::string_view name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& one) { return one.first == name; });
  return found == arrays.end() ? Array{} : found->second;
}

Array real_array(const Array& array, const std::string& name, Index rank) {
  if (array.scalar == Scalar::character || array.rank() != rank)
    refuse("{} has shape {}; must have {} sizes", name, shape_text(array.shape), rank);
  Array numbers = to_f64(array);
  require_finite(numbers, name);
  return numbers;
}

/// One number per recorded point, possibly infinite; empty if there are none.
std::vector<double> record_list(const NamedArrays& arrays, const std::string& name, std::size_t records) {
  const Array array = find_array(arrays, name);
  if (!array.given()) return {};
  if (array.scalar == Scalar::character || array.rank() != 1 || array.size() != static_cast<Index>(records)) {
    refuse("{} has shape {}; must have one number per point of record_W, {} in all", name, shape_text(array.shape),
           records);
  }
  const Array numbers = to_f64(array);
  return {f64_span(numbers).begin(), f64_span(numbers).end()};
}

}  // namespace

StoredRun internal::run_from(const NamedArrays& arrays) {
  const auto find = [&](std::string_view name) { return find_array(arrays, name); };
  StoredRun run;
  if (!find("W").given()) refuse("W is missing; a run must have it");
  if (find("dual").given()) refuse("array 'dual' does not belong to a run; this looks like a solution file");
  const Index rank = find("W").rank() == 3 ? 3 : 2;  // 3: many heads, whose weights stand one under the other
  const Array W = real_array(find("W"), "W", rank);
  if (rank == 3) run.heads = W.shape[0];
  run.W = ConstRows(f64_span(W).data(), W.size() / W.shape.back(), W.shape.back());
  if (const Array settings = find("settings"); settings.given()) run.settings = to_text(settings, "settings");
  if (const Array given = find("v"); given.given()) {
    const Array v = real_array(given, "v", rank - 1);
    if (rank == 3 && v.shape[0] != run.heads)
      refuse("v has shape {}; must have one row per head, {} in all", shape_text(v.shape), run.heads);
    run.v = ConstVector(f64_span(v).data(), v.size());
  } else if (rank == 3) {
    refuse("v is missing; a run of many heads must have it");
  }
  if (const Array stored = find("task_fingerprint"); stored.given()) {
    const auto numbers = to_indices(stored, "task_fingerprint");
    if (stored.rank() != 0) refuse("task_fingerprint has shape {}; must be a single number", shape_text(stored.shape));
    run.task_fingerprint = numbers.front();
  }
  if (!find("record_W").given()) return run;
  run.numbers = real_array(find("record_W"), "record_W", rank + 1);
  const auto& shape = run.numbers.shape;
  if (!std::equal(W.shape.begin(), W.shape.end(), shape.begin() + 1)) {
    refuse("record_W has shape {}; must be (r,{}) as W is", shape_text(shape), fmt::join(W.shape, ","));
  }
  for (Index r = 0; r < shape[0]; ++r) {
    run.record.emplace_back(f64_span(run.numbers).data() + r * run.W.size(), run.W.rows(), run.W.cols());
  }
  if (const Array steps = find("record_step"); steps.given()) {
    run.record_step = to_indices(steps, "record_step");
    if (run.record_step.size() != run.record.size())
      refuse("record_step has {} entries and record_W {}", run.record_step.size(), run.record.size());
  }
  if (const Array given = find("record_v"); given.given()) {
    const Array v = real_array(given, "record_v", rank);
    if (v.shape[0] != shape[0] || v.size() != shape[0] * run.v.size())
      refuse("record_v has shape {}; must be one v per point of record_W", shape_text(v.shape));
    run.record_v = ConstRows(f64_span(v).data(), shape[0], run.v.size());
  }
  run.record_loss = record_list(arrays, "record_loss", run.record.size());
  run.record_log_gradient = record_list(arrays, "record_log_gradient", run.record.size());
  return run;
}

StoredRun load_run(const std::string& path, Threads& threads) {
  const NpzFile file(path);
  NamedArrays arrays;
  for (const char* name : kRunArrays) {
    if (file.has(name)) arrays.emplace_back(name, file.read(name, threads));
  }
  return with_place(path, [&] { return run_from(arrays); });
}

StoredRun head_of(const StoredRun& run, Index head) {
  const Index d = run.W.rows() / run.heads, dv = run.v.size() / run.heads;
  StoredRun one = run;
  one.heads = 1;
  one.W = run.W.middleRows(head * d, d);
  one.v = run.v.segment(head * dv, dv);
  one.record.clear();
  for (const ConstRows& all : run.record) one.record.emplace_back(all.row(head * d).data(), d, all.cols());
  if (run.record_v.size() > 0) one.record_v = run.record_v.middleCols(head * dv, dv);
  return one;
}

StoredRun head_of(const StoredRun& run, std::optional<Index> head, const std::string& option) {
  if (run.heads == 1 && !head) return run;
  if (run.heads == 1) refuse("{} {}: the run has one head", option, *head);
  if (!head) refuse("is a run of {} heads; choose one with {}", run.heads, option);
  if (*head < 0 || *head >= run.heads)
    refuse("{} {}: must be from 0 to {}, the heads of the run", option, *head, run.heads - 1);
  return head_of(run, *head);
}

RunTrace trace_of(const StoredRun& run) {
  return {.W = run.W,
          .record = run.record,
          .steps = run.record_step,
          .implied = implied_norm_of_words(run.settings),
          .settings = run.settings};
}

Index internal::fingerprint_of(const NamedArrays& arrays) {
  std::uint32_t sum = 0;
  const auto add = [&](const void* data, std::size_t size) { sum = libdeflate_crc32(sum, data, size); };
  for (const auto& [name, given] : arrays) {
    const Array array = to_native(given);
    add(name.data(), name.size());
    add(array.shape.data(), array.shape.size() * sizeof(Index));
    add(array.data, static_cast<std::size_t>(array.bytes()));
  }
  return sum;
}

Index fingerprint_of(const AttentionTask& task) {
  NamedArrays arrays = task_arrays(task);
  std::erase_if(arrays, [](const auto& one) { return one.first == "select"; });
  return internal::fingerprint_of(arrays);
}

void require_run_of(const AttentionTask& task, const StoredRun& run) {
  if (run.W.rows() != run.heads * task.key_size() || run.W.cols() != task.query_size()) {
    refuse("W has shape ({},{}); the task needs ({},{})", run.W.rows() / run.heads, run.W.cols(), task.key_size(),
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

AttentionTask with_head(const AttentionTask& task, Index head, const std::string& option) {
  const Array& values = task.arrays().head;
  const bool many = values.rank() == 2 && task.head().kind != HeadKind::hidden;
  if (!many) refuse("{} {}: the task has no head with one row per head of attention", option, head);
  if (head < 0 || head >= values.shape[0])
    refuse("{} {}: must be from 0 to {}, the rows of head", option, head, values.shape[0] - 1);
  return with_head(task, ConstVector(f64_span(values).data() + head * values.shape[1], values.shape[1]));
}

}  // namespace attsvm
