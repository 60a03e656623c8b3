#pragma once

#include <span>
#include <vector>

#include "attsvm/selector.h"
#include "attsvm/train.h"

namespace attsvm::internal {

// What the queries of a task, or of a part of one, say one by one. Means over all of them are sums in this order.

/// The weight at W of token tokens[i] of query i; for next-token tasks, of all copies of the label. With many heads one
/// head after another.
std::vector<double> weights_of(const AttentionTask& task, const RowMatrix& W, std::span<const Index> tokens,
                               Threads& threads);

/// The entropies of the attention of the queries at W, one head after another.
std::vector<double> entropies_of(const AttentionTask& task, const RowMatrix& W, Threads& threads);

/// y_i h(v_i) over the selected tokens, of all heads one after another; next-token tasks: 1 for the label, else −1.
std::vector<double> outputs_of(const AttentionTask& task, const Head& head, std::span<const Index> selected);

/// The loss and the accuracy of these outputs.
HardSelection outcome_of(std::span<const double> outputs, Loss loss, bool next_token);

inline double mean_of(std::span<const double> numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

}  // namespace attsvm::internal
