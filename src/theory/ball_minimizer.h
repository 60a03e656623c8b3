#pragma once

#include <functional>

#include "attsvm/array.h"

namespace attsvm::internal {

/// A function known by its gradient alone, which is given as direction · e^{log_scale} so that it never underflows.
struct ScaledGradient {
  Eigen::VectorXd direction;
  double log_scale = 0;
};

struct BallProblem {
  std::function<void(const Eigen::VectorXd&, ScaledGradient&)> gradient;
  std::function<bool()> stop{};  ///< called between gradients; true ends the search where it is
  double radius = 1;             ///< of the ball ‖θ‖ ≤ radius
  double reach = 1;              ///< distance over which the gradient changes by about its own size, for differences
  double tolerance = 1e-8;       ///< on the stationarity
  Index iteration_limit = 500;
};

struct BallMinimum {
  Eigen::VectorXd theta;
  /// On the sphere, with the gradient pushing outwards: the length of the tangent part of g/‖g‖. Inside: ‖g‖.
  double stationarity = 0;
  bool inside = false;
  Index iterations = 0;
};

/// A local minimum on the ball by a trust-region Newton method from `start`. Second derivatives are differences of
/// gradients along conjugate-gradient directions. The gradients at both ends of a step decide whether it descends,
/// since values of the function no longer differ where the softmax has saturated.
BallMinimum minimize_on_ball(const BallProblem& problem, Eigen::VectorXd start);

}  // namespace attsvm::internal
