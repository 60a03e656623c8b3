#include "train/shared_task.h"

#include <algorithm>

#include "train/gradient.h"
#include "train/query_lists.h"

namespace attsvm::internal {
namespace {

std::string job_of(Job job, const RowMatrix& W) { return Packer().put(job).put(W).take(); }

/// One number per query of all ranks: what `own` returns here, then the answers to `job`.
template <class Own>
std::vector<double> gathered(const SharedTask& task, const std::string& job, Own&& own) {
  if (!task.ask) return own();
  std::vector<double> all;
  for (const std::string& answer : task.ask(job, [&] { all = own(); })) {
    for (Unpacker in(answer); !in.done();) {
      const auto more = in.list<double>();
      all.insert(all.end(), more.begin(), more.end());
    }
  }
  return all;
}

std::span<const Index> own_of(const SharedTask& task, const AttentionMap& map) {
  return task.ask ? std::span(map.selected).first(static_cast<std::size_t>(task.part->queries()))
                  : std::span(map.selected);
}

}  // namespace

AttentionMap attention_map(const SharedTask& task, const RowMatrix& W, Threads& threads) {
  if (!task.ask) return attention_map(*task.part, W, threads);
  AttentionMap own;
  const std::vector<std::string> answers =
      task.ask(job_of(Job::map, W), [&] { own = attention_map(*task.part, W, threads); });
  AttentionMap all;
  all.log_weights.setConstant(task.queries, task.longest, -std::numeric_limits<double>::infinity());
  const auto append = [&](const RowMatrix& logs, std::span<const Index> selected) {
    all.log_weights.block(static_cast<Index>(all.selected.size()), 0, logs.rows(), logs.cols()) = logs;
    all.selected.insert(all.selected.end(), selected.begin(), selected.end());
  };
  append(own.log_weights, own.selected);
  for (const std::string& answer : answers) {
    for (Unpacker in(answer); !in.done();) {
      const auto logs = in.matrix<RowMatrix>();
      append(logs, in.list<Index>());
    }
  }
  return all;
}

double mean_weight(const SharedTask& task, const RowMatrix& W, const AttentionMap& last, Threads& threads) {
  return mean_of(
      gathered(task, job_of(Job::weights, W), [&] { return weights_of(*task.part, W, own_of(task, last), threads); }));
}

double mean_entropy(const SharedTask& task, const RowMatrix& W, Threads& threads) {
  return mean_of(gathered(task, job_of(Job::entropies, W), [&] { return entropies_of(*task.part, W, threads); }));
}

HardSelection hard_selection(const SharedTask& task, const Head& head, Loss loss, const AttentionMap& last) {
  Packer job;
  job.put(Job::outcomes);
  pack(job, head);
  const auto outputs = gathered(task, job.take(), [&] { return outputs_of(*task.part, head, own_of(task, last)); });
  return outcome_of(outputs, loss, task.part->next_token());
}

struct TaskMember::State {
  SharedTask task;
  Threads& threads;
  std::optional<GradientPass> pass{};
  std::vector<Index> selected{};  // by the last attention_map()
  Job last = Job::passes;

  std::string answer(Unpacker& job);
};

TaskMember::TaskMember(const SharedTask* task, Threads& threads)
    : state_(task != nullptr ? new State{*task, threads} : nullptr) {}

TaskMember::~TaskMember() = default;

std::string TaskMember::answer(const std::string& job) {
  if (!state_ || job.empty()) return {};
  Unpacker in(job);
  return state_->answer(in);
}

std::string TaskMember::merged(std::string own, std::string_view next) const {
  if (!state_ || own.empty() || next.empty() || state_->last != Job::gradient) return own.append(next);
  return state_->pass.value().merged(own, next);
}

std::string TaskMember::State::answer(Unpacker& job) {
  const AttentionTask& part = *task.part;
  const auto packed = [](const std::vector<double>& numbers) { return Packer().put(std::span(numbers)).take(); };
  last = job.get<Job>();
  switch (last) {
    case Job::passes:
      pass.emplace(task, job.get<PassSettings>(), threads);
      return {};
    case Job::gradient:
      return pass.value().answer(job);
    case Job::map: {
      const AttentionMap map = attention_map(part, job.matrix<RowMatrix>(), threads);
      selected = map.selected;
      return Packer().put(map.log_weights).put(std::span<const Index>(selected)).take();
    }
    case Job::weights:
      return packed(weights_of(part, job.matrix<RowMatrix>(), selected, threads));
    case Job::entropies:
      return packed(entropies_of(part, job.matrix<RowMatrix>(), threads));
    case Job::outcomes: {
      const Head head = unpacked_head(job);
      return packed(outputs_of(part, head, selected));
    }
  }
  throw std::logic_error("an unknown job came from rank 0");
}

}  // namespace attsvm::internal
