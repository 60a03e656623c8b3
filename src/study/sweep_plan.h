#pragma once

#include <memory>
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
  std::shared_ptr<const AttentionTask> task;  ///< the user's own, from a file; else drawn by the recipe
  std::optional<TrainSettings> training;      ///< nullopt: the SVMs of the optimal (or the drawn) selection
  std::optional<std::uint64_t> seed;          ///< nullopt: that of the sweep
  std::vector<Json> values;                   ///< one per setting of the plan
};

/// A setting that the file gives.
struct SweepSetting {
  std::string name;
  bool varied = false;  ///< has several values
};

/// A sweep file, read and checked.
struct SweepPlan {
  std::string name, title;
  std::string kind;  ///< of the tasks; empty: files
  std::string x;     ///< the setting on the x axis; empty: none
  std::vector<SweepSetting> settings;
  std::vector<std::string> measures;
  bool require_feasible = false;
  Index runs = 100;
  std::uint64_t seed = 0;
  std::vector<SweepPoint> points;
};

/// What a sweep can measure.
struct SweepMeasure {
  std::string name, words, meaning;  ///< words: on axes
  bool training = false;             ///< needs it
  bool share = false;                ///< 0 or 1, so that its mean is a share
  bool up_to_one = false;            ///< never above 1, and so neither are its bars
};
const std::vector<SweepMeasure>& sweep_measures();
const SweepMeasure& sweep_measure(const std::string& name);

/// InputError names the field, its value and the rule.
SweepPlan parse_sweep(const nlohmann::json& file);

}  // namespace attsvm::internal
