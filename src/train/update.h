#pragma once

#include "train/average.h"
#include "train/directions.h"
#include "train/gradient.h"
#include "train/optimizers.h"
#include "train/parameters.h"

namespace attsvm::internal {

/// The steps of the optimizer that TrainSettings name.
class Update {
 public:
  Update(const TrainSettings& settings, const Parameters& point);

  /// Writes the arrays after step number `step` (from 0) to `next`, which has the shapes of `now`.
  void apply(const Parameters& now, const std::vector<const ScaledMatrix*>& gradients, double log_excess, Index step,
             Parameters& next);

  /// Whether a zero gradient leaves the arrays where they are: nothing is remembered, and nothing decays.
  bool rests() const;

  /// Calls use(array) for the arrays of the optimizer's memory.
  template <class Self, class Use>
  static void for_each_array(Self& self, Use&& use) {
    for (auto& average : self.averages_) Average::for_each_array(average, use);
    for (auto& moments : self.moments_) AdamMoments::for_each_array(moments, use);
  }

 private:
  double epsilon(std::size_t k) const;
  void mirror(const RowMatrix& theta, const ScaledMatrix& g, double factor, RowMatrix& out) const;
  void steepest(const RowMatrix& theta, const ScaledMatrix& g, std::size_t k, double step_size, RowMatrix& out);

  TrainSettings settings_;
  StepRule rule_;
  bool joint_;
  std::size_t arrays_;
  std::vector<Average> averages_;     // one per array, if the optimizer averages gradients
  std::vector<AdamMoments> moments_;  // one per array, if it is Adam
  SteepestDirection direction_;
  ScaledMatrix mixed_;
  RowMatrix moved_;
};

/// The step size of step number `step` (from 0).
double scheduled_step(const TrainSettings& settings, Index step);

}  // namespace attsvm::internal
