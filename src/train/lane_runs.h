#pragma once

#include <algorithm>
#include <optional>

#include "train/lane_kernels.h"
#include "train/lane_steps.h"
#include "train/parameters.h"

namespace attsvm::internal {

// The largest n·T·d of a run in the lanes of a CPU, beyond which they are slower than other ways, and of a GPU.
inline constexpr Index kMostLaneNumbers = 4096, kMostDeviceNumbers = 1 << 15;

/// The sizes of a run. Runs of equal shape can share vectors.
struct LaneShape {
  Index n = 0, T = 0, d = 0, dz = 0, r = 0;  ///< r = 0: W (or p) is trained
  bool in_cpu_lanes() const { return n * T * d <= kMostLaneNumbers; }
};

/// The shape of a run that lanes can take, and its scores (n,T), label included; tied scores have equal bits.
struct LaneInput {
  LaneShape shape;
  std::vector<double> gamma;
};

/// Empty if lanes cannot take the run. They can if n·T·d is at most `most_numbers`, queries are few, the head linear
/// and not trained, the arithmetic exact, the optimizer gd, ngd or one that lane_step knows, without sampling, ridge or
/// label smoothing, and if no number can overflow in the steps of the run. The scores of a query must tie or differ by
/// more than rounding, and no two of its keys may be equal.
std::optional<LaneInput> lane_input(const AttentionTask& task, const TrainSettings& settings, const Head& head,
                                    const Parameters& start, Index most_numbers = kMostLaneNumbers);

/// Whether the steps of a rule are along the gradient, so that the trained arrays need not be stored whole.
bool along_gradient(const StepRule& rule);

/// Runs of one shape that take their steps together.
class LaneRuns {
 public:
  /// `lanes` as in LaneGroup.
  LaneRuns(const LaneShape& shape, Index lanes, const TrainSettings& settings);

  /// Puts a run into a lane, copying task and start; without its keys if the lane is for record() alone. Every lane
  /// needs a run before evaluate().
  void put(Index lane, const AttentionTask& task, const LaneInput& input, const Parameters& start, bool keys = true);

  LaneGroup& group() { return group_; }       ///< the numbers of the runs, for those who take the steps elsewhere
  void evaluate() { lane_gradient(group_); }  ///< gradients at the present points
  void advance(double size, Index step);      ///< step number `step` from there

  bool rests(Index lane) const;                          ///< the gradient is zero, and no further step would move
  void read_point(Index lane, Parameters& point) const;  ///< W, or K, Q and their product
  double loss(Index lane) const;                         ///< at the point of the last evaluate()
  Record record(Index lane, Index step, Parameters& point) const;

  /// Calls use(number) for all numbers that the rest of a run depends on.
  template <class Use>
  void for_each_number(Index lane, Use use) {
    const Index vectors = group_.whole ? 0 : shape_.n * (shape_.r > 0 ? shape_.r : shape_.d);
    for (Index k = 0; k < vectors; ++k) use(at(group_.reach, k, lane));
    for (Index k = 0; k < vectors; ++k) use(at(group_.added, k, lane));
    for (Index k = 0; k < shape_.d * shape_.r && !group_.whole; ++k) use(at(group_.K, k, lane));
    for (LaneArray& array : whole_) {
      part_uniform(group_.lanes, array);
      const Index size = array.rows * array.cols;
      for (double* numbers : {array.theta, array.mean, array.square, array.block}) {
        for (Index k = 0; k < size && numbers != nullptr; ++k) use(at(numbers, k, lane));
      }
      const Index columns = array.columns == nullptr ? 0 : (array.rows + array.cols) * std::min(array.rows, array.cols);
      for (Index k = 0; k < columns; ++k) use(at(array.columns, k, lane));
    }
  }

 private:
  struct alignas(64) CacheLine {
    double numbers[8];
  };

  double& at(double* array, Index k, Index lane) const { return array[k * group_.lanes + lane]; }
  double* room(Index size);
  void add_whole(Index rows, Index cols, double* theta, const double* descent);

  LaneShape shape_;
  StepRule rule_;
  bool narrow_ = false;  // W is stored by its columns in an orthonormal basis of the queries
  LaneGroup group_;
  std::vector<LaneArray> whole_;                // the trained arrays, where they are stored whole
  std::vector<std::vector<CacheLine>> arrays_;  // what group_ and whole_ point into
  // One per lane: W or Q at the start, the basis of the queries (dz,n) if W is narrow, queries (n,dz)
  std::vector<RowMatrix> first_, basis_, Z_;
};

}  // namespace attsvm::internal
