#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "attsvm/selector.h"
#include "base/kernels/stream.h"
#include "train/products.h"
#include "train/query_lists.h"

namespace attsvm {

using namespace internal;

namespace {

/// Writes log s_it of the tokens that one query sees to `out` and returns the place of the largest among them. W is one
/// head's, `u` is scratch memory.
Index log_softmax(const AttentionTask& task, const double* W, Index query, std::vector<double>& u, double* out) {
  const Index T = task.visible(query), d = task.key_size();
  u.resize(static_cast<std::size_t>(d));
  dots(W, d, task.query_size(), task.query(query).data(), u.data());
  if (task.next_token()) {
    row_dots_at(task.embeddings().data(), task.ids(query).data(), T, d, u.data(), out);
  } else {
    dots(task.seen_keys(query).data(), T, d, u.data(), out);
  }
  if (const double* b = task.bias(query)) {
    for (Index t = 0; t < T; ++t) out[t] += b[t];
  }
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

/// −Σ s log s.
double entropy_of(std::span<const double> log_weights) {
  double entropy = 0;
  for (const double log_weight : log_weights) {
    const double weight = std::exp(log_weight);
    if (weight > 0) entropy -= weight * log_weight;
  }
  return entropy;
}

/// The weight of all copies of the label.
double label_weight(const AttentionTask& task, Index query, const double* log_weights) {
  double sum = 0;
  for (const Index token : task.ids(query)) {
    if (token == task.next(query)) sum += std::exp(*log_weights);
    ++log_weights;
  }
  return sum;
}

constexpr Index kShare = 16;  // queries per chunk

/// One query of one head.
struct HeadQuery {
  Index query;
  const double* W;  ///< the head's
  Index row;        ///< h·q + query
};

/// How many heads W is of: their weights are one under the other.
Index heads_in(const AttentionTask& task, const RowMatrix& W) { return W.rows() / task.key_size(); }

template <class Work>
void for_queries(const AttentionTask& task, const RowMatrix& W, Threads& threads, Work&& work) {
  const Index queries = task.queries(), rows = heads_in(task, W) * queries, head_size = task.key_size() * W.cols();
  threads.for_each((rows + kShare - 1) / kShare, [&](Index chunk) {
    std::vector<double> u;
    for (Index row = chunk * kShare; row < std::min(rows, (chunk + 1) * kShare); ++row) {
      work(HeadQuery{row % queries, W.data() + row / queries * head_size, row}, u);
    }
  });
}

}  // namespace

double AttentionMap::weight(Index query) const {
  if (!label_weights.empty()) return label_weights[static_cast<std::size_t>(query)];
  return std::exp(log_weights(query, selected[static_cast<std::size_t>(query)]));
}

AttentionMap attention_map(const AttentionTask& task, const RowMatrix& W, Threads& threads) {
  AttentionMap map;
  const Index rows = heads_in(task, W) * task.queries();
  map.selected.resize(static_cast<std::size_t>(rows));
  if (task.next_token()) {
    map.label_weights.resize(map.selected.size());
  } else {
    map.log_weights.setConstant(rows, task.longest(), -std::numeric_limits<double>::infinity());
  }
  for_queries(task, W, threads, [&](const HeadQuery& at, std::vector<double>& u) {
    const Index i = at.query;
    const auto row = static_cast<std::size_t>(at.row);
    if (task.next_token()) {
      std::vector<double> weights(static_cast<std::size_t>(task.visible(i)));
      map.selected[row] = log_softmax(task, at.W, i, u, weights.data());
      map.label_weights[row] = label_weight(task, i, weights.data());
      return;
    }
    const auto seen = task.seen(i);
    double* logs = map.log_weights.row(at.row).data();  // first as seen, then each at its token, the last one first
    const Index peak = log_softmax(task, at.W, i, u, logs);
    map.selected[row] = seen[static_cast<std::size_t>(peak)];
    for (std::size_t k = seen.size(); k-- > 0 && seen[k] != static_cast<Index>(k);)
      logs[seen[k]] = std::exchange(logs[k], -std::numeric_limits<double>::infinity());
  });
  return map;
}

std::vector<double> internal::weights_of(const AttentionTask& task, const RowMatrix& W, std::span<const Index> tokens,
                                         Threads& threads) {
  std::vector<double> weights(static_cast<std::size_t>(heads_in(task, W) * task.queries()));
  for_queries(task, W, threads, [&](const HeadQuery& at, std::vector<double>& u) {
    const Index i = at.query;
    const auto row = static_cast<std::size_t>(at.row);
    std::vector<double> logs(static_cast<std::size_t>(task.visible(i)));
    log_softmax(task, at.W, i, u, logs.data());
    if (task.next_token()) {
      weights[row] = label_weight(task, i, logs.data());
      return;
    }
    const auto seen = task.seen(i);
    const auto place = std::lower_bound(seen.begin(), seen.end(), tokens[row]) - seen.begin();
    weights[row] = std::exp(logs[static_cast<std::size_t>(place)]);
  });
  return weights;
}

std::vector<double> internal::entropies_of(const AttentionTask& task, const RowMatrix& W, Threads& threads) {
  std::vector<double> entropies(static_cast<std::size_t>(heads_in(task, W) * task.queries()));
  for_queries(task, W, threads, [&](const HeadQuery& at, std::vector<double>& u) {
    std::vector<double> logs(static_cast<std::size_t>(task.visible(at.query)));
    log_softmax(task, at.W, at.query, u, logs.data());
    entropies[static_cast<std::size_t>(at.row)] = entropy_of(logs);
  });
  return entropies;
}

double mean_weight(const AttentionTask& task, const RowMatrix& W, std::span<const Index> tokens, Threads& threads) {
  return mean_of(weights_of(task, W, tokens, threads));
}

double mean_entropy(const AttentionTask& task, const RowMatrix& W, Threads& threads) {
  return mean_of(entropies_of(task, W, threads));
}

double mean_entropy(const AttentionMap& map) {
  double sum = 0;
  for (Index k = 0; k < map.log_weights.rows(); ++k)
    sum += entropy_of({map.log_weights.row(k).data(), static_cast<std::size_t>(map.log_weights.cols())});
  return sum / static_cast<double>(map.log_weights.rows());
}

}  // namespace attsvm
