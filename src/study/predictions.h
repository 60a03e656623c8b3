#pragma once

#include <array>
#include <string>

#include "attsvm/theory.h"
#include "study/study.h"

namespace attsvm::internal {

// How well each SVM predicts the W of a run with a nonlinear head.

struct Prediction {
  const char *name, *label, *meaning;  ///< in results and tables; in figures; of the column
};
inline constexpr std::array kPredictions{
    Prediction{"equivalence", "W_{fin} + R W^{mm}", "mean 1 − correlation of W with W_fin + R W^mm"},
    Prediction{"gen", "W^{mm} of the Gen-SVM", "mean 1 − correlation of W with W^mm of the Gen-SVM"},
    Prediction{"single", "SVM of the largest token", "mean 1 − correlation of W with the SVM of the largest token"}};

/// Adds 1 − correlation of a run's W with every prediction: its list over the records under prefix + name, and the last
/// entry under prefix + name + "_final". False if verify() does not confirm the SVMs of the fit; nothing is then added.
bool add_distances(const AttentionTask& task, const Selection& kept, const AttentionMap& map, const Equivalence& fit,
                   const TrainedRun& run, const std::string& prefix, Json& result);

}  // namespace attsvm::internal
