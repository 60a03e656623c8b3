#pragma once

#include "attsvm/margin.h"

namespace attsvm {

/// Training a nonlinear head keeps several tokens of a query: W ≈ finite part + R · Gen-SVM direction.
struct Equivalence {
  MarginSolution gen;     ///< the SVM that keeps the sets level and ahead of the rest
  MarginSolution finite;  ///< smallest W with the observed log-ratios among kept tokens
  MarginSolution single;  ///< the SVM of each query's largest token alone
  double R = 0;           ///< least-squares factor of gen in W − finite
  RowMatrix W;            ///< finite + R · gen

  bool holds_together() const {  ///< both parts exist, so that R and W have a meaning
    return gen.status == MarginStatus::optimal && finite.status == MarginStatus::optimal;
  }
};

/// The tokens with attention at least `threshold`, the largest one always.
Selection kept_tokens(const AttentionTask& task, const RowMatrix& log_attention, double threshold);

/// `log_attention` (q,T) is that of W. `stop` ends the solves by returning true.
Equivalence fit_equivalence(const AttentionTask& task, const Selection& kept, const RowMatrix& W,
                            const RowMatrix& log_attention, MarginSolver& solver,
                            const std::function<bool()>& stop = {});

}  // namespace attsvm
