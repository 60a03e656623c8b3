#include <algorithm>
#include <cmath>

#include "attsvm/task.h"
#include "base/refuse.h"

namespace attsvm {

using namespace internal;

std::vector<double> head_values(const AttentionTask& task) {
  if (task.next_token()) refuse("a next-token task has no head; scores and optimal tokens need one");
  if (task.head().kind == HeadKind::none) {
    if (task.arrays().head.given())
      refuse("head has one v per head of attention; scores and optimal tokens need a single v");
    refuse("head is missing; scores and optimal tokens need one");
  }
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(task.tokens()));
  for (Index s = 0; s < task.sequences(); ++s) {
    const ConstRows V = task.values(s);
    // One row at a time, so that equal tokens get the same bits at any position.
    for (Index t = 0; t < V.rows(); ++t) {
      values.push_back(task.head().value(V.row(t).transpose()));
      if (!std::isfinite(values.back())) {
        refuse("head: its value at token {} of sequence {} is {}; tokens and head are too large", t, s, values.back());
      }
    }
  }
  return values;
}

OptimalTokens optimal_tokens(const AttentionTask& task, double tie_tolerance) {
  const std::vector<double> values = head_values(task);
  std::vector<Index> best(static_cast<std::size_t>(task.queries()));
  std::vector<Tie> ties;
  for (Index i = 0; i < task.queries(); ++i) {
    const auto score = [&, first = task.offset(task.sequence(i))](Index t) {
      return task.label(i) * values[static_cast<std::size_t>(first + t)];
    };
    double top = score(task.seen(i).front()), largest = 0;
    for (const Index t : task.seen(i)) {
      top = std::max(top, score(t));
      largest = std::max(largest, std::abs(score(t)));
    }
    Tie tie{i, {}};
    for (const Index t : task.seen(i)) {
      if (score(t) >= top - tie_tolerance * largest) tie.tokens.push_back(t);
    }
    best[static_cast<std::size_t>(i)] = tie.tokens.front();
    if (tie.tokens.size() > 1) ties.push_back(std::move(tie));
  }
  return {Selection::single(best), std::move(ties)};
}

}  // namespace attsvm
