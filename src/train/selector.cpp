#include "attsvm/selector.h"

#include <cmath>

#include "base/limits.h"
#include "train/losses.h"
#include "train/query_lists.h"

namespace attsvm {

using namespace internal;

std::vector<double> internal::outputs_of(const AttentionTask& task, const Head& head, std::span<const Index> selected) {
  const Index heads = static_cast<Index>(selected.size()) / task.queries(), dv = task.value_size();
  const auto token_of = [&](Index h, Index i) { return selected[static_cast<std::size_t>(h * task.queries() + i)]; };
  std::vector<double> outputs;
  for (Index i = 0; i < task.queries(); ++i) {
    if (task.next_token()) {
      outputs.push_back(task.ids(i)[static_cast<std::size_t>(token_of(0, i))] == task.next(i) ? 1 : -1);
      continue;
    }
    const ConstRows values = task.values(task.sequence(i));
    double f = 0;
    if (heads == 1) f = head.value(values.row(token_of(0, i)).transpose());
    for (Index h = 0; h < heads && heads > 1; ++h) f += head.v.segment(h * dv, dv).dot(values.row(token_of(h, i)));
    outputs.push_back(task.label(i) * f);
  }
  return outputs;
}

HardSelection internal::outcome_of(std::span<const double> outputs, Loss loss, bool next_token) {
  HardSelection hard;
  for (const double u : outputs) {
    hard.loss += next_token ? kNaN : loss_terms(loss, u).value;
    hard.accuracy += u > 0 ? 1 : 0;
  }
  const auto queries = static_cast<double>(outputs.size());
  hard.loss /= queries;
  hard.accuracy /= queries;
  return hard;
}

HardSelection hard_selection(const AttentionTask& task, const Head& head, Loss loss, const AttentionMap& map) {
  return outcome_of(outputs_of(task, head, map.selected), loss, task.next_token());
}

double scheduled_temperature(const TrainSettings& settings, Index step) {
  const auto [first, last] = settings.temperature;
  if (first == last || step == 0) return first;
  if (step == settings.steps) return last;
  return first * std::pow(last / first, static_cast<double>(step) / static_cast<double>(settings.steps));
}

}  // namespace attsvm
