#pragma once

#include <vector>

#include "attsvm/task.h"
#include "attsvm/threads.h"

namespace attsvm::internal {

/// vᵀv_t of every token for a linear head, numbered as AttentionTask::seen_row does, stored as the sum of two doubles,
/// so that the difference of two scores is accurate however close they are.
///
/// Scores tie if they could be equal before the data (v and v_t) were rounded to doubles, half a unit in the last place
/// each. So a tie in exact arithmetic is still a tie after the data are stored.
class TokenScores {
 public:
  void compute(const AttentionTask& task, const Eigen::VectorXd& v, Threads& threads);

  double value(Index token) const { return high_[static_cast<std::size_t>(token)]; }
  /// Score of token a minus score of token b; exactly 0 if they tie.
  double gap(Index a, Index b) const {
    const auto s = static_cast<std::size_t>(a), t = static_cast<std::size_t>(b);
    const double difference = (high_[s] - high_[t]) + (low_[s] - low_[t]);
    return difference > slack_[s] + slack_[t] || -difference > slack_[s] + slack_[t] ? difference : 0;
  }

 private:
  std::vector<double> high_, low_, slack_;
};

}  // namespace attsvm::internal
