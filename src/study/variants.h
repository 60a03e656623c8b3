#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attsvm/theory.h"
#include "study/training.h"

namespace attsvm::internal {

// Several ways of training the same tasks, side by side.

/// A way of training, by the name that tables and figures use.
struct Variant {
  std::string name;
  TrainSettings training;
};

/// The settings of a cell that runs all variants on every task: its own, and the variants.
Json cell_settings(Json own, const std::vector<Variant>& variants);
std::vector<Variant> variants_of(const Json& settings);

/// The SVMs of one task: each selection is solved once per norm, for all variants that end at it, and verified.
class TaskSvms {
 public:
  struct Selected {
    MarginProblem problem;
    std::map<std::string, MarginSolution> solutions{};  ///< by the name of the norm
    bool verified = true;                               ///< verify() confirms all of them
  };

  TaskSvms(const AttentionTask& task, Threads& threads) : task_(task), threads_(threads), solver_(threads) {}

  /// The problem of the tokens that W selects.
  Selected& selected_by(const RowMatrix& W);
  const MarginSolution& solve(Selected& selected, const Norm& norm);

 private:
  const AttentionTask& task_;
  Threads& threads_;
  MarginSolver solver_;
  std::map<std::vector<Index>, Selected> known_;
};

/// What a study keeps of one run, given the SVMs of the tokens that it selects.
using Measure = std::function<Json(const Variant&, const TrainedRun&, TaskSvms&, TaskSvms::Selected&)>;

/// Trains the tasks of a cell by all its variants. A row has under every variant's name what `measure` says of the run,
/// or why there is nothing to say: kOverflowed, kNotSeparable, kNotVerified.
/// Curves are recorded at `steps`, if it is given.
std::vector<StudyRow> run_variants(const Json& settings, const Draws& draws, Threads& threads,
                                   std::vector<Index> (*steps)(Index), const Measure& measure);

inline constexpr const char *kOverflowed = "overflow", *kNotSeparable = "not separable";

/// The measures of one variant, and how many of its runs are left out and why.
struct Measured {
  std::vector<const Json*> runs;
  Index overflowed = 0, not_separable = 0, not_verified = 0;
};
Measured measured(const CellRows& rows, const std::string& variant);

/// The entry of a list in every run, under a name.
Sample sample_at(const std::vector<const Json*>& runs, const std::string& name, std::size_t at);

}  // namespace attsvm::internal
