#include <algorithm>
#include <array>
#include <charconv>

#include "attsvm/stack_files.h"
#include "base/refuse.h"
#include "io/output.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::array kStackArrays{"W",
                                  "V",
                                  "causal",
                                  "record_step",
                                  "record_W",
                                  "record_V",
                                  "record_loss",
                                  "record_log_loss",
                                  "record_log_gradient",
                                  "settings",
                                  "task_fingerprint"};

void append(const std::vector<RowMatrix>& matrices, std::vector<double>& numbers) {
  for (const RowMatrix& one : matrices) numbers.insert(numbers.end(), one.data(), one.data() + one.size());
}

Array find_stack_array(const NamedArrays& arrays, const std::string& name, bool needed = true) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const auto& one) { return one.first == name; });
  if (found != arrays.end()) return found->second;
  if (needed) refuse("{} is missing; the file of a stack must have it", name);
  return {};
}

/// The array as f64 if it has this shape.
Array shaped(const NamedArrays& arrays, const std::string& name, const std::vector<Index>& shape) {
  const Array array = find_stack_array(arrays, name);
  if (array.scalar == Scalar::character || array.shape != shape)
    refuse("{} has shape {}; must be {}", name, shape_text(array.shape), shape_text(shape));
  return to_f64(array, name);
}

/// The seed that settings in words name.
std::optional<std::uint64_t> seed_in(std::string_view words) {
  constexpr std::string_view kSeed = ", seed ";
  const std::size_t found = words.find(kSeed);
  if (found == std::string_view::npos) return std::nullopt;
  std::uint64_t seed = 0;
  const auto read = std::from_chars(words.data() + found + kSeed.size(), words.data() + words.size(), seed);
  return read.ec == std::errc() ? std::optional(seed) : std::nullopt;
}

std::vector<RowMatrix> matrices_at(const Array& numbers, Index from, Index count, Index d) {
  std::vector<RowMatrix> list;
  for (Index k = 0; k < count; ++k) list.emplace_back(ConstRows(f64_span(numbers).data() + (from + k) * d * d, d, d));
  return list;
}

}  // namespace

NamedArrays stack_arrays(const AttentionTask& task, const StackSettings& settings, const StackRun& run) {
  const Stack& stack = run.last.stack;
  const Index d = task.value_size(), r = std::ssize(run.records);
  const std::vector<Index> shape{stack.layers, stack.heads, d, d}, many{r, stack.layers, stack.heads, d, d};
  std::vector<double> W, V, record_W, record_V, loss, log_loss, log_gradient;
  std::vector<Index> steps;
  append(stack.W, W);
  append(stack.V, V);
  for (const StackRecord& record : run.records) {
    steps.push_back(record.step);
    append(record.stack.W, record_W);
    if (settings.train_values) append(record.stack.V, record_V);
    loss.push_back(record.loss);
    log_loss.push_back(record.log_loss);
    log_gradient.insert(log_gradient.end(), record.log_gradient.begin(), record.log_gradient.end());
  }
  NamedArrays arrays{{"W", Array::own(std::move(W), shape)},
                     {"V", Array::own(std::move(V), shape)},
                     {"causal", Array::own(std::vector<bool>{stack.causal}, {})},
                     {"record_step", Array::own(std::move(steps), {r})},
                     {"record_W", Array::own(std::move(record_W), many)}};
  if (settings.train_values) arrays.emplace_back("record_V", Array::own(std::move(record_V), many));
  arrays.emplace_back("record_loss", Array::own(std::move(loss), {r}));
  arrays.emplace_back("record_log_loss", Array::own(std::move(log_loss), {r}));
  arrays.emplace_back("record_log_gradient", Array::own(std::move(log_gradient), {r, stack.layers, stack.heads}));
  arrays.emplace_back("settings", Array::text(words_of(settings)));
  arrays.emplace_back("task_fingerprint", Array::own(std::vector<Index>{fingerprint_of(task)}, {}));
  return arrays;
}

void save_stack(const std::string& path, const AttentionTask& task, const StackSettings& settings, const StackRun& run,
                bool replace) {
  write_npz(path, stack_arrays(task, settings, run), replace);
}

StoredStack stack_from(const NamedArrays& arrays) {
  const Array W = find_stack_array(arrays, "W");
  if (W.rank() != 4 || W.shape[2] != W.shape[3] || W.size() == 0)
    refuse("W has shape {}; must be (L,H,d,d)", shape_text(W.shape));
  const Index layers = W.shape[0], heads = W.shape[1], d = W.shape[2], count = layers * heads;
  Array V = shaped(arrays, "V", W.shape);
  const Array causal = find_stack_array(arrays, "causal");
  if (causal.scalar != Scalar::boolean || causal.size() != 1)
    refuse("causal has shape {}; must be a single bool", shape_text(causal.shape));
  const std::vector<Index> steps = to_indices(find_stack_array(arrays, "record_step"), "record_step");
  const Index r = std::ssize(steps);
  const std::vector<Index> many{r, layers, heads, d, d};
  Array record_W = shaped(arrays, "record_W", many);
  Array record_V = find_stack_array(arrays, "record_V", false).given() ? shaped(arrays, "record_V", many) : Array{};
  const Array loss = shaped(arrays, "record_loss", {r}), log_loss = shaped(arrays, "record_log_loss", {r}),
              gradient = shaped(arrays, "record_log_gradient", {r, layers, heads});
  require_finite(V, "V");
  Array final_W = shaped(arrays, "W", W.shape);
  require_finite(final_W, "W");
  require_finite(record_W, "record_W");
  if (record_V.given()) require_finite(record_V, "record_V");
  if (r == 0) refuse("record_step has shape (0); must have at least one point");
  for (Index k = 1; k < r; ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (steps[at] <= steps[at - 1])
      refuse("record_step[{}] = {}; must be larger than the one before it, {}", k, steps[at], steps[at - 1]);
  }
  const std::span<const double> last = f64_span(record_W).last(static_cast<std::size_t>(W.size()));
  if (!std::equal(last.begin(), last.end(), f64_span(final_W).begin()))
    refuse("W differs from the last matrices of record_W; it must be the same");
  StoredStack stored{.settings = to_text(find_stack_array(arrays, "settings"), "settings"), .records = {}};
  stored.seed = seed_in(stored.settings);
  for (Index k = 0; k < r; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const double* logs = f64_span(gradient).data() + k * count;
    stored.records.push_back(
        {.step = steps[at],
         .loss = f64_span(loss)[at],
         .log_loss = f64_span(log_loss)[at],
         .log_gradient = {logs, logs + count},
         .stack = {.layers = layers,
                   .heads = heads,
                   .causal = f64_span(to_f64(causal))[0] != 0,
                   .W = matrices_at(record_W, k * count, count, d),
                   .V = record_V.given() ? matrices_at(record_V, k * count, count, d) : std::vector<RowMatrix>()}});
  }
  if (!record_V.given()) stored.records.back().stack.V = matrices_at(V, 0, count, d);
  if (const Array number = find_stack_array(arrays, "task_fingerprint", false); number.given())
    stored.task_fingerprint = to_indices(number, "task_fingerprint").at(0);
  return stored;
}

StoredStack load_stack(const std::string& path, Threads& threads) {
  const NpzFile file(path);
  NamedArrays arrays;
  for (const char* name : kStackArrays) {
    if (file.has(name)) arrays.emplace_back(name, file.read(name, threads));
  }
  return with_place(path, [&] { return stack_from(arrays); });
}

bool holds_stack(const std::string& path) {
  const NpzFile file(path);
  return file.has("V") && file.has("causal");
}

void require_stack_of(const AttentionTask& task, const StoredStack& stack) {
  require_stackable(task);
  const Index d = stack.records.back().stack.W.front().rows();
  if (d != task.value_size())
    refuse("W has matrices ({},{}); the task's tokens need ({},{})", d, d, task.value_size(), task.value_size());
  if (stack.task_fingerprint && *stack.task_fingerprint != fingerprint_of(task))
    refuse("is a run of another task: task_fingerprint = {}; the task's is {}", *stack.task_fingerprint,
           fingerprint_of(task));
}

}  // namespace attsvm
