#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attsvm/generate.h"
#include "attsvm/train.h"
#include "study/study.h"

namespace attsvm::internal {

/// One combination of the values that a sweep goes through.
struct SweepPoint {
  Recipe recipe;
  std::optional<TrainSettings> training;  ///< nullopt: the SVMs of the optimal (or the drawn) selection
  std::vector<Json> values;               ///< of the varied settings, in the order of SweepPlan::varied
};

/// A sweep file, read and checked.
struct SweepPlan {
  std::string name, title, kind, x;
  std::vector<std::string> varied, measures;
  bool require_feasible = false;
  Index runs = 100;
  std::uint64_t seed = 0;
  std::vector<SweepPoint> points;
};

/// The measures and their meanings; those of the second list need training.
const std::vector<Column>& solve_measures();
const std::vector<Column>& train_measures();

/// InputError names the field, its value and the rule.
SweepPlan parse_sweep(const nlohmann::json& file);

}  // namespace attsvm::internal
