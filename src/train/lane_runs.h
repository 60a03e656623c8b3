#pragma once

#include <optional>

#include "train/lane_kernels.h"
#include "train/parameters.h"

namespace attsvm {

/// Runs of equal shape can share vectors.
struct LaneShape {
  Index n = 0, T = 0, d = 0, dz = 0, r = 0;  ///< r = 0: W (or p) is trained
};

/// A run that lanes can take, and its scores with the label, (n,T), equal bits where they tie.
struct LaneInput {
  LaneShape shape;
  std::vector<double> gamma;
};

/// Nothing where lanes cannot take the run: they are for small tasks with linear heads that are not trained, exact
/// arithmetic, gd and ngd, without sampling, decay or ridge, and for numbers that cannot overflow in the steps there
/// are. Scores of a query must tie or differ by more than rounding blurs, and no two of its keys may be equal.
std::optional<LaneInput> lane_input(const AttentionTask& task, const TrainSettings& settings, const Head& head,
                                    const Parameters& start);

/// Runs of one shape that go step by step together.
class LaneRuns {
 public:
  /// `lanes` as in LaneGroup.
  LaneRuns(const LaneShape& shape, Index lanes, const TrainSettings& settings);

  /// Puts a run into a lane; every lane needs one. Task and start are copied.
  void put(Index lane, const AttentionTask& task, const LaneInput& input, const Parameters& start);

  void evaluate() { lane_gradient(group_); }              ///< gradients at the present points
  void advance(double step) { lane_move(group_, step); }  ///< one step from there

  bool gradient_is_zero(Index lane) const;
  void read_point(Index lane, Parameters& point) const;  ///< W, or K, Q and their product
  double loss(Index lane) const;                         ///< where evaluate() stood last, as all of a record
  Record record(Index lane, Index step, Parameters& point) const;

  /// use(number) for all that the rest of a run depends on.
  template <class Use>
  void for_each_number(Index lane, Use use) {
    const Index vectors = shape_.n * (shape_.r > 0 ? shape_.r : shape_.d);
    for (Index k = 0; k < vectors; ++k) use(at(group_.reach, k, lane));
    for (Index k = 0; k < vectors; ++k) use(at(group_.added, k, lane));
    for (Index k = 0; k < shape_.d * shape_.r; ++k) use(at(group_.K, k, lane));
  }

 private:
  struct alignas(64) CacheLine {
    double numbers[8];
  };

  double& at(double* array, Index k, Index lane) const { return array[k * group_.lanes + lane]; }
  double* room(Index size);

  LaneShape shape_;
  LaneGroup group_;
  std::vector<std::vector<CacheLine>> arrays_;  // what group_ points into
  std::vector<RowMatrix> first_, Z_;            // of each lane: W or Q at the start, queries (n,dz)
};

}  // namespace attsvm
