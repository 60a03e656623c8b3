#include "attsvm/selector.h"

#include <cmath>

#include "base/limits.h"
#include "train/losses.h"

namespace attsvm {

using namespace internal;

HardSelection hard_selection(const AttentionTask& task, const Head& head, Loss loss, const AttentionMap& map) {
  HardSelection hard;
  const Index heads = static_cast<Index>(map.selected.size()) / task.queries(), dv = task.value_size();
  const auto selected = [&](Index h, Index i) {
    return map.selected[static_cast<std::size_t>(h * task.queries() + i)];
  };
  for (Index i = 0; i < task.queries(); ++i) {
    const Index token = selected(0, i);
    if (task.next_token()) {
      hard.loss = kNaN;
      hard.accuracy += task.ids(i)[static_cast<std::size_t>(token)] == task.next(i) ? 1 : 0;
      continue;
    }
    const ConstRows values = task.values(task.sequence(i));
    double f = 0;
    if (heads == 1) f = head.value(values.row(token).transpose());
    for (Index h = 0; h < heads && heads > 1; ++h) f += head.v.segment(h * dv, dv).dot(values.row(selected(h, i)));
    const double u = task.label(i) * f;
    hard.loss += loss_terms(loss, u).value;
    hard.accuracy += u > 0 ? 1 : 0;
  }
  const auto queries = static_cast<double>(task.queries());
  hard.loss /= queries;
  hard.accuracy /= queries;
  return hard;
}

double scheduled_temperature(const TrainSettings& settings, Index step) {
  const auto [first, last] = settings.temperature;
  if (first == last || step == 0) return first;
  if (step == settings.steps) return last;
  return first * std::pow(last / first, static_cast<double>(step) / static_cast<double>(settings.steps));
}

}  // namespace attsvm
