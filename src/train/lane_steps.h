#pragma once

#include "attsvm/array.h"
#include "train/optimizers.h"

namespace attsvm::internal {

/// A trained array of a group of runs, stored whole, with the memory of its optimizer. Numbers are laid out as in
/// LaneGroup: number k of run l is entry k·lanes + l.
struct LaneArray {
  Index rows = 0, cols = 0;
  double* theta = nullptr;                                      ///< the array
  const double* descent = nullptr;                              ///< minus its gradient, without the factor e^{top}/n
  double *mean = nullptr, *square = nullptr, *block = nullptr;  ///< as in Average and AdamMoments, or null
  bool uniform = false;    ///< each run has the same block for all entries, and only those of entry 0 are stored
  double* peak = nullptr;  ///< the largest of the numbers that share it, one per run; of s for Adam
  double *mixed = nullptr, *mixed_block = nullptr;  ///< scratch, where gradients are averaged
  double* columns = nullptr;  ///< memory of lane_polar_step: (rows + cols)·min(rows, cols) numbers
};

/// A step that all runs of a group take.
struct LaneStep {
  StepRule rule;
  double size = 0;              ///< step size, schedule included
  Index number = 0;             ///< steps taken before
  const double* top = nullptr;  ///< the exponents of the gradients, one per run
  double queries = 1;           ///< n
};

constexpr Index kMostPolarColumns = 64;  ///< the largest min(rows, cols) that lane_polar_step takes

/// Moves the array along U Vᵀ of the matrix U Σ Vᵀ at `source`, without singular values below kRankTolerance.
void lane_polar_step(const LaneStep& step, Index lanes, const double* source, LaneArray& array);

/// Stores the blocks of all entries.
void part_uniform(Index lanes, LaneArray& array);

/// Whether lane_step can take the steps of a rule.
bool lanes_can_step(const StepRule& rule);

/// Moves the array by one step and updates the memory. Computes what Update computes, in the same order of operations
/// up to rounding; a run gives the same bits in any lane of any width. `lanes` as in LaneGroup.
void lane_step(const LaneStep& step, Index lanes, LaneArray& array);

}  // namespace attsvm::internal
