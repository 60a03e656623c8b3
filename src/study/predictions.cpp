#include "study/predictions.h"

#include "study/training.h"

namespace attsvm::internal {

bool add_distances(const AttentionTask& task, const Selection& kept, const AttentionMap& map, const Equivalence& fit,
                   const TrainedRun& run, const std::string& prefix, Json& result) {
  if (!is_verified(MarginProblem::attention(task, kept), fit.gen) ||
      !is_verified(MarginProblem::attention(task, Selection::single(map.selected)), fit.single))
    return false;
  const std::array<const RowMatrix*, kPredictions.size()> predicted{&fit.W, &fit.gen.W, &fit.single.W};
  for (std::size_t p = 0; p < kPredictions.size(); ++p) {
    std::vector<double> list = correlations(run, *predicted[p]);
    for (double& entry : list) entry = 1 - entry;
    result[prefix + kPredictions[p].name + "_final"] = list.back();
    result[prefix + kPredictions[p].name] = json_list(list);
  }
  return true;
}

}  // namespace attsvm::internal
