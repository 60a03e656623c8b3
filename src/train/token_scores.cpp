#include "train/token_scores.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {

void TokenScores::compute(const AttentionTask& task, const Eigen::VectorXd& v, Threads& threads) {
  constexpr Index kChunk = 1024;
  constexpr double kRounding = 0x1p-52;  // half a unit in the last place of v, and the same of v_t
  const Index tokens = task.tokens(), size = v.size();
  high_.resize(static_cast<std::size_t>(tokens) + task.copied().size());
  low_.resize(high_.size());
  slack_.resize(high_.size());
  const double* values = task.values(0).data();
  threads.for_each((tokens + kChunk - 1) / kChunk, [&](Index chunk) {
    for (Index t = chunk * kChunk; t < std::min(tokens, (chunk + 1) * kChunk); ++t) {
      const double* x = values + t * size;
      double high = 0, low = 0, total = 0;
      for (Index j = 0; j < size; ++j) {  // also sums the rounding error of every product and sum
        const double product = v[j] * x[j], product_error = std::fma(v[j], x[j], -product);
        const double sum = high + product, part = sum - high;
        low += ((high - (sum - part)) + (product - part)) + product_error;
        high = sum;
        total += std::abs(product);
      }
      const double rounded = high + low;
      const auto at = static_cast<std::size_t>(t);
      high_[at] = rounded;
      low_[at] = (high - rounded) + low;
      slack_[at] = kRounding * total;
    }
  });
  for (std::size_t k = 0; k < task.copied().size(); ++k) {
    const auto from = static_cast<std::size_t>(task.copied()[k]), to = static_cast<std::size_t>(tokens) + k;
    for (auto* numbers : {&high_, &low_, &slack_}) (*numbers)[to] = (*numbers)[from];
  }
}

}  // namespace attsvm::internal
