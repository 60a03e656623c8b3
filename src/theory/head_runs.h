#pragma once

#include <vector>

#include "attsvm/margin.h"
#include "attsvm/train.h"
#include "theory/head_division.h"

namespace attsvm::internal {

// Runs of many heads, for claims and studies.

/// A run of many heads, each judged against the SVM of its own selection.
struct HeadsRun {
  TrainedRun run;
  std::vector<Index> selected;      ///< (H·q), one head after another
  std::vector<MarginSolution> svm;  ///< (H), in Frobenius norm, each confirmed by verify()
  std::vector<double> distance;     ///< (H) 1 − correlation with it; infinite where there is none
  double level = 0;                 ///< 1 − correlation of all W_h with all solutions, as one vector each
  HeadDivision division;
};

HeadsRun run_heads(const AttentionTask& task, const TrainSettings& settings, Threads& alone);

/// 1 − correlation of every head with its SVM at a recorded point.
std::vector<double> head_distances(const HeadsRun& heads, const RowMatrix& W);

/// The tokens that the same heads select if each is trained by itself.
std::vector<Index> selected_alone(const AttentionTask& task, TrainSettings settings, const TrainedRun& together,
                                  Threads& alone);

}  // namespace attsvm::internal
