#pragma once

#include <vector>

#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm {

/// vᵀv_t of every token for a linear head, as the unevaluated sum of two doubles, so that the difference of two scores
/// is right to all its digits however close they are.
///
/// Scores tie when rounding of the data (half a unit in the last place of v and v_t) could have made them equal: a tie
/// that holds in exact arithmetic survives being stored in doubles.
class TokenScores {
 public:
  void compute(const AttentionTask& task, const Eigen::VectorXd& v, Threads& threads);

  double value(Index token) const { return high_[static_cast<std::size_t>(token)]; }
  /// Score of token a less that of token b (numbered over all sequences); exactly 0 where they tie.
  double gap(Index a, Index b) const {
    const auto s = static_cast<std::size_t>(a), t = static_cast<std::size_t>(b);
    const double difference = (high_[s] - high_[t]) + (low_[s] - low_[t]);
    return difference > slack_[s] + slack_[t] || -difference > slack_[s] + slack_[t] ? difference : 0;
  }

 private:
  std::vector<double> high_, low_, slack_;
};

}  // namespace attsvm
