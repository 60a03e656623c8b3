#include <algorithm>
#include <cmath>
#include <limits>

#include "attsvm/train.h"
#include "train/products.h"

namespace attsvm {

using namespace internal;

namespace {

/// Writes log s_it of one query to `out` and returns the token of largest weight. `u` is scratch memory.
Index log_softmax(const AttentionTask& task, const RowMatrix& W, Index query, std::vector<double>& u, double* out) {
  const Index T = task.visible(query), d = task.key_size();
  u.resize(static_cast<std::size_t>(d));
  dots(W.data(), d, task.query_size(), task.query(query).data(), u.data());
  dots(task.keys(task.sequence(query)).data(), T, d, u.data(), out);
  const Index peak = std::max_element(out, out + T) - out;
  const double top = out[peak];
  double others = 0;
  for (Index t = 0; t < T; ++t) {
    out[t] -= top;
    if (t != peak) others += std::exp(out[t]);
  }
  const double log_sum = std::log1p(others);
  for (Index t = 0; t < T; ++t) out[t] -= log_sum;
  return peak;
}

constexpr Index kShare = 16;  // queries per chunk

Index chunks_of(const AttentionTask& task) { return (task.queries() + kShare - 1) / kShare; }

template <class Work>
void for_queries(const AttentionTask& task, Threads& threads, Work&& work) {
  threads.for_each(chunks_of(task), [&](Index chunk) {
    std::vector<double> u;
    for (Index i = chunk * kShare; i < std::min(task.queries(), (chunk + 1) * kShare); ++i) work(i, u);
  });
}

}  // namespace

double AttentionMap::weight(Index query) const {
  return std::exp(log_weights(query, selected[static_cast<std::size_t>(query)]));
}

AttentionMap attention_map(const AttentionTask& task, const RowMatrix& W, Threads& threads) {
  AttentionMap map;
  map.log_weights.setConstant(task.queries(), task.longest(), -std::numeric_limits<double>::infinity());
  map.selected.resize(static_cast<std::size_t>(task.queries()));
  for_queries(task, threads, [&](Index i, std::vector<double>& u) {
    map.selected[static_cast<std::size_t>(i)] = log_softmax(task, W, i, u, map.log_weights.row(i).data());
  });
  return map;
}

double mean_weight(const AttentionTask& task, const RowMatrix& W, std::span<const Index> tokens, Threads& threads) {
  std::vector<double> weights(static_cast<std::size_t>(task.queries()));
  for_queries(task, threads, [&](Index i, std::vector<double>& u) {
    std::vector<double> logs(static_cast<std::size_t>(task.visible(i)));
    log_softmax(task, W, i, u, logs.data());
    const auto at = static_cast<std::size_t>(i);
    weights[at] = std::exp(logs[static_cast<std::size_t>(tokens[at])]);
  });
  double sum = 0;
  for (const double weight : weights) sum += weight;
  return sum / static_cast<double>(task.queries());
}

}  // namespace attsvm
