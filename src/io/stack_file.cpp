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
                                  "A",
                                  "B",
                                  "causal",
                                  "record_step",
                                  "record_W",
                                  "record_V",
                                  "record_A",
                                  "record_B",
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

/// One kind of matrices of a stack, over a run. The last two sizes of the array are those of a matrix.
class History {
 public:
  /// The array and, if its matrices were trained, record_<name>, which must end with it.
  History(const NamedArrays& arrays, const std::string& name, const std::vector<Index>& shape, Index records,
          bool trained)
      : last_(shaped(arrays, name, shape)), records_(records) {
    require_finite(last_, name);
    if (!trained) return;
    const std::string record = "record_" + name;
    std::vector<Index> many{records};
    many.insert(many.end(), shape.begin(), shape.end());
    all_ = shaped(arrays, record, many);
    require_finite(all_, record);
    const std::span<const double> end = f64_span(all_).last(static_cast<std::size_t>(last_.size()));
    if (!std::equal(end.begin(), end.end(), f64_span(last_).begin()))
      refuse("{} differs from the last matrices of {}; it must be the same", name, record);
  }
  History() = default;  ///< of no matrices

  /// The matrices at a record; those that were not trained at the last one alone.
  std::vector<RowMatrix> at(Index record) const {
    std::vector<RowMatrix> list;
    if (!last_.given() || (!all_.given() && record + 1 < records_)) return list;
    const Index rows = last_.shape[last_.shape.size() - 2], columns = last_.shape.back();
    const double* numbers = all_.given() ? f64_span(all_).data() + record * last_.size() : f64_span(last_).data();
    for (Index k = 0; k < last_.size(); k += rows * columns) list.emplace_back(ConstRows(numbers + k, rows, columns));
    return list;
  }

 private:
  Array last_, all_;
  Index records_ = 0;
};

/// The shape (L,h,d) of the MLPs of a stack; empty: it has none.
std::vector<Index> mlp_shape(const NamedArrays& arrays, Index layers, Index d) {
  const Array A = find_stack_array(arrays, "A", false), B = find_stack_array(arrays, "B", false);
  if (!A.given() && !B.given()) return {};
  if (!A.given() || !B.given())
    refuse("{} is missing; a stack with {} must have it", A.given() ? "B" : "A", A.given() ? "A" : "B");
  if (A.rank() != 3 || A.shape[0] != layers || A.shape[2] != d || A.size() == 0)
    refuse("A has shape {}; must be ({},h,{})", shape_text(A.shape), layers, d);
  return A.shape;
}

}  // namespace

NamedArrays stack_arrays(const AttentionTask& task, const StackSettings& settings, const StackRun& run) {
  const Stack& stack = run.last.stack;
  const Index d = task.value_size(), r = std::ssize(run.records);
  const std::vector<Index> shape{stack.layers, stack.heads, d, d}, many{r, stack.layers, stack.heads, d, d};
  const std::vector<Index> mlp{stack.layers, settings.mlp, d}, many_mlp{r, stack.layers, settings.mlp, d};
  std::vector<double> W, V, A, B, record_W, record_V, record_A, record_B, loss, log_loss, log_gradient;
  std::vector<Index> steps;
  append(stack.W, W);
  append(stack.V, V);
  append(stack.A, A);
  append(stack.B, B);
  for (const StackRecord& record : run.records) {
    steps.push_back(record.step);
    append(record.stack.W, record_W);
    if (settings.train_values) {
      append(record.stack.V, record_V);
      append(record.stack.A, record_A);
      append(record.stack.B, record_B);
    }
    loss.push_back(record.loss);
    log_loss.push_back(record.log_loss);
    log_gradient.insert(log_gradient.end(), record.log_gradient.begin(), record.log_gradient.end());
  }
  NamedArrays arrays{{"W", Array::own(std::move(W), shape)}, {"V", Array::own(std::move(V), shape)}};
  if (settings.mlp > 0) {
    arrays.emplace_back("A", Array::own(std::move(A), mlp));
    arrays.emplace_back("B", Array::own(std::move(B), mlp));
  }
  arrays.emplace_back("causal", Array::own(std::vector<bool>{stack.causal}, {}));
  arrays.emplace_back("record_step", Array::own(std::move(steps), {r}));
  arrays.emplace_back("record_W", Array::own(std::move(record_W), many));
  if (settings.train_values) arrays.emplace_back("record_V", Array::own(std::move(record_V), many));
  if (settings.train_values && settings.mlp > 0) {
    arrays.emplace_back("record_A", Array::own(std::move(record_A), many_mlp));
    arrays.emplace_back("record_B", Array::own(std::move(record_B), many_mlp));
  }
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
  const Array weights = find_stack_array(arrays, "W");
  const std::vector<Index>& shape = weights.shape;
  if (weights.rank() != 4 || shape[2] != shape[3] || weights.size() == 0)
    refuse("W has shape {}; must be (L,H,d,d)", shape_text(shape));
  const Index layers = shape[0], heads = shape[1], d = shape[2], count = layers * heads;
  const Array causal = find_stack_array(arrays, "causal");
  if (causal.scalar != Scalar::boolean || causal.size() != 1)
    refuse("causal has shape {}; must be a single bool", shape_text(causal.shape));
  const std::vector<Index> steps = to_indices(find_stack_array(arrays, "record_step"), "record_step");
  const Index r = std::ssize(steps);
  const Array loss = shaped(arrays, "record_loss", {r}), log_loss = shaped(arrays, "record_log_loss", {r}),
              gradient = shaped(arrays, "record_log_gradient", {r, layers, heads});
  if (r == 0) refuse("record_step has shape (0); must have at least one point");
  for (Index k = 1; k < r; ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (steps[at] <= steps[at - 1])
      refuse("record_step[{}] = {}; must be larger than the one before it, {}", k, steps[at], steps[at - 1]);
  }
  const bool trained = find_stack_array(arrays, "record_V", false).given();
  const std::vector<Index> mlp = mlp_shape(arrays, layers, d);
  const History W(arrays, "W", shape, r, true), V(arrays, "V", shape, r, trained);
  const History A = mlp.empty() ? History() : History(arrays, "A", mlp, r, trained),
                B = mlp.empty() ? History() : History(arrays, "B", mlp, r, trained);
  StoredStack stored{.settings = to_text(find_stack_array(arrays, "settings"), "settings"), .records = {}};
  stored.seed = seed_in(stored.settings);
  for (Index k = 0; k < r; ++k) {
    const auto at = static_cast<std::size_t>(k);
    const double* logs = f64_span(gradient).data() + k * count;
    stored.records.push_back({.step = steps[at],
                              .loss = f64_span(loss)[at],
                              .log_loss = f64_span(log_loss)[at],
                              .log_gradient = {logs, logs + count},
                              .stack = {.layers = layers,
                                        .heads = heads,
                                        .causal = f64_span(to_f64(causal))[0] != 0,
                                        .W = W.at(k),
                                        .V = V.at(k),
                                        .A = A.at(k),
                                        .B = B.at(k)}});
  }
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
