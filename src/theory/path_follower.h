#pragma once

#include <functional>

#include "attsvm/theory.h"
#include "attsvm/train.h"
#include "theory/ball_minimizer.h"
#include "theory/path_limits.h"
#include "train/gradient.h"

namespace attsvm::internal {

/// One start, followed through the radii. Its point is θ (W, or K and Q one after the other) and v. When `stop` returns
/// true, minimisations end where they are; the stationarity says how close the point is to a minimum.
class PathFollower {
 public:
  /// All arguments must outlive the follower.
  PathFollower(const AttentionTask& task, const PathSettings& settings, const std::function<bool()>& stop,
               Threads& threads);

  /// Begins at a random point of a ball that is no larger than `radius`, and small enough that the softmax is not
  /// saturated; start 0 of a joint path keeps the task's own head, if it has one.
  void begin_anywhere(std::uint32_t start, double radius);
  /// Begins in a direction, at the edge of the ball, and minimises there.
  void begin_along(const PathLimits::Limit& limit, double radius);
  /// Minimises at this radius, passing through radii in between.
  void follow(double radius);

  PathPoint point();

 private:
  bool factored() const { return settings_.param == Parametrization::KQ; }
  double ball(double radius) const;
  void unpack(const Eigen::VectorXd& theta, RowMatrix& W, RowMatrix& K, RowMatrix& Q) const;
  void gradient(const Eigen::VectorXd& theta, ScaledGradient& out);
  void settle(double radius);
  double weight_stationarity();
  void settle_weights();
  void minimize_weights();
  double settle_head();
  double rank_slope();
  void raise_rank();

  const AttentionTask& task_;
  const PathSettings& settings_;
  const std::function<bool()>& stop_;
  GradientPass pass_;
  Head head_;
  Index d_, dz_, width_;
  Threads& threads_;
  double key_reach_ = 1, value_reach_ = 1;  // distances over which gradients of W and v change by about their own size
  Eigen::VectorXd theta_;
  double radius_ = 0, stationarity_ = 0;
  bool inside_ = false, settled_ = false;
  bool has_room_ = false;  // some column of K and Q is unused
  Index iterations_ = 0;
  RowMatrix W_, K_, Q_;
  Eigen::VectorXd steepest_left_, steepest_right_;  // the pair of singular vectors of σ₁(G)
  LossGradient found_;
};

}  // namespace attsvm::internal
