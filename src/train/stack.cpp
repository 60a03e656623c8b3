#include "attsvm/stack.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "base/refuse.h"
#include "train/stack_pass.h"
#include "train/streams.h"
#include "train/usual_records.h"

namespace attsvm {

using namespace internal;

namespace {

/// For every layer, the positions on which the output depends once attention has saturated.
std::vector<std::vector<Index>> live_positions(const Stack& stack, const StackTrace& trace) {
  std::vector<std::vector<Index>> live(static_cast<std::size_t>(stack.layers));
  std::vector<Index> asked{trace.readout};
  for (Index layer = stack.layers - 1; layer >= 0; --layer) {
    live[static_cast<std::size_t>(layer)] = asked;
    for (const Index q : live[static_cast<std::size_t>(layer)]) {
      for (Index head = 0; head < stack.heads; ++head)
        asked.push_back(trace.heads[stack.at(layer, head)].peaks[static_cast<std::size_t>(q)]);
    }
    std::sort(asked.begin(), asked.end());
    asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  }
  return live;
}

std::vector<std::vector<Index>> all_positions(const StackTrace& trace) {
  std::vector<std::vector<Index>> all(trace.first.size());
  for (std::size_t layer = 0; layer < all.size(); ++layer) {
    for (Index q = trace.first[layer]; q < trace.last[layer]; ++q) all[layer].push_back(q);
  }
  return all;
}

/// What is kept of the way of a sequence through a stack: not the logits of its heads, T² each.
struct LayerReads {
  Index readout = 0;                            ///< the position that the head reads
  std::vector<std::vector<Index>> positions{};  ///< that ask, per layer
  std::vector<RowMatrix> inputs{};              ///< (T,d) of every layer, then the output
};

/// The arrays of a task of self attention, sequence by sequence.
struct SequenceList {
  std::vector<double> tokens{};
  std::vector<Index> offsets{0}, query_token{}, sequence{}, visible{};

  void add(const RowMatrix& X, const std::vector<Index>& askers, bool causal) {
    const Index rows = X.rows(), number = std::ssize(offsets) - 1;
    tokens.insert(tokens.end(), X.data(), X.data() + X.size());
    offsets.push_back(offsets.back() + rows);
    for (const Index q : askers) {
      query_token.push_back(q);
      sequence.push_back(number);
      visible.push_back(causal ? q + 1 : rows);
    }
  }

  AttentionTask task(Index d) && {
    const Index rows = offsets.back(), sequences = std::ssize(offsets), queries = std::ssize(query_token);
    return AttentionTask({.tokens = Array::own(std::move(tokens), {rows, d}),
                          .offsets = Array::own(std::move(offsets), {sequences}),
                          .query_token = Array::own(std::move(query_token), {queries}),
                          .sequence = Array::own(std::move(sequence), {queries}),
                          .visible = Array::own(std::move(visible), {queries})});
  }
};

}  // namespace

std::string_view name_of(StackValues values) { return values == StackValues::random ? "random" : "identity"; }

std::string words_of(const StackSettings& settings) {
  return fmt::format("{} {} of {} {}{}, {}, {} values{}, {}{}", settings.layers,
                     settings.layers == 1 ? "layer" : "layers", settings.heads, settings.heads == 1 ? "head" : "heads",
                     settings.mlp > 0 ? fmt::format(", MLP of {}", settings.mlp) : "",
                     settings.causal ? "causal" : "full attention", name_of(settings.values),
                     settings.train_values ? " trained too" : "", settings.one_norm ? "one norm over all, " : "",
                     words_of(settings.training));
}

void require_stackable(const AttentionTask& task) {
  if (task.next_token()) refuse("ids are given; a stack reads tokens");
  if (task.kind() == AttentionKind::cross)
    refuse("queries are given; in a stack the tokens ask (leave queries out, or give query_token)");
  if (task.arrays().keys.given()) refuse("keys are given; in a stack the tokens are the keys");
  if (task.biased()) refuse("bias is given; the logits of a stack are W's alone");
  if (task.head().kind == HeadKind::none) refuse("head is missing; a stack needs one to read its output");
  if (!task.arrays().query_token.given()) return;
  const std::vector<Index> tokens = to_indices(task.arrays().query_token, "query_token");
  for (Index i = 0; i < task.queries(); ++i) {
    const Index token = tokens[static_cast<std::size_t>(i)];
    if (!task.visible().sees(i, token))
      refuse("query_token[{}] = {}, which the query does not see; a stack is read at a token that it sees", i, token);
  }
}

Stack starting_stack(const AttentionTask& task, const StackSettings& settings) {
  const Index d = task.value_size(), count = settings.layers * settings.heads;
  const TrainSettings& training = settings.training;
  const Random start(training.seed, training.instance, kStackStart),
      values(training.seed, training.instance, kStackValues);
  const double root = std::sqrt(static_cast<double>(d));
  Stack stack{.layers = settings.layers, .heads = settings.heads, .causal = settings.causal};
  for (Index k = 0; k < count; ++k) {
    const auto first = static_cast<std::uint64_t>(k * d * d);
    RowMatrix W = RowMatrix::Zero(d, d), V = RowMatrix::Identity(d, d);
    for (Index j = 0; j < d * d; ++j) {
      const std::uint64_t place = first + static_cast<std::uint64_t>(j);
      if (training.init == Init::random) W.data()[j] = (2 * start.uniform(place) - 1) / root;
      if (settings.values == StackValues::random) V.data()[j] = values.normal(place) / root;
    }
    stack.W.push_back(std::move(W));
    stack.V.push_back(std::move(V));
  }
  const Random reads(training.seed, training.instance, kStackReads),
      writes(training.seed, training.instance, kStackWrites);
  for (Index layer = 0; layer < settings.layers && settings.mlp > 0; ++layer) {
    RowMatrix A(settings.mlp, d), B(settings.mlp, d);
    for (Index j = 0; j < A.size(); ++j) {
      const auto place = static_cast<std::uint64_t>(layer * A.size() + j);
      A.data()[j] = reads.normal(place) / root;
      B.data()[j] = writes.normal(place) / std::sqrt(static_cast<double>(settings.mlp));
    }
    stack.A.push_back(std::move(A));
    stack.B.push_back(std::move(B));
  }
  return stack;
}

namespace internal {

RecordPlan usual_records(const AttentionTask& task, const StackSettings& settings) {
  const Index d = task.value_size(), W = settings.layers * settings.heads * d * d,
              A = settings.layers * settings.mlp * d;
  return usual_records(settings.training.steps, std::max<Index>(settings.train_values ? 2 * (W + A) : W, 1));
}

}  // namespace internal

std::vector<AttentionTask> layer_tasks(const AttentionTask& task, const Stack& stack, Askers askers, Threads& threads) {
  require_stackable(task);
  if (stack.V.size() != stack.W.size())
    refuse("the stack has {} matrices V; must have {}, one per head", stack.V.size(), stack.W.size());
  if (stack.A.size() != stack.B.size())
    refuse("the stack has {} matrices A and {} matrices B; must have as many", stack.A.size(), stack.B.size());
  const std::vector<Index> readouts = readouts_of(task);
  std::vector<LayerReads> found(static_cast<std::size_t>(task.queries()));
  threads.for_each(task.queries(), [&](Index i) {
    const auto k = static_cast<std::size_t>(i);
    StackTrace trace = trace_through(task, stack, i, readouts[k]);
    found[k] = {.readout = trace.readout,
                .positions = askers == Askers::live ? live_positions(stack, trace) : all_positions(trace),
                .inputs = std::move(trace.inputs)};
  });
  std::vector<SequenceList> lists(static_cast<std::size_t>(stack.layers));
  for (const LayerReads& reads : found) {
    for (std::size_t layer = 0; layer < lists.size(); ++layer) {
      const RowMatrix& X = reads.inputs[layer];
      // Under the causal mask nobody sees the tokens after the one that is read, nor are they computed.
      lists[layer].add(stack.causal ? RowMatrix(X.topRows(reads.readout + 1)) : X, reads.positions[layer],
                       stack.causal);
    }
  }
  std::vector<AttentionTask> tasks;
  tasks.reserve(lists.size());
  for (SequenceList& list : lists) tasks.push_back(std::move(list).task(task.value_size()));
  return tasks;
}

}  // namespace attsvm
