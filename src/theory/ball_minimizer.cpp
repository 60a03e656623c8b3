#include "theory/ball_minimizer.h"

#include <algorithm>
#include <cmath>

namespace attsvm::internal {
namespace {

constexpr double kDifference = 1e-5;  // step of a central difference, in units of the reach
constexpr double kFar = 1e4;          // widest trust region, in units of the reach

/// An iterate: the gradient there, and the part of it that a feasible step can use.
class Walker {
 public:
  Walker(const BallProblem& problem, Eigen::VectorXd start) : problem_(problem), theta_(std::move(start)) {
    if (const double norm = theta_.norm(); norm > problem_.radius) theta_ *= problem_.radius / norm;
    look();
    trust_ = problem_.reach;
  }

  BallMinimum walk() {
    Index iteration = 0;
    while (stationarity_ > problem_.tolerance && iteration < problem_.iteration_limit && trust_ > 1e-14 * reach() &&
           !stopped()) {
      step();
      ++iteration;
    }
    return {theta_, stationarity_, !on_sphere_, iteration};
  }

 private:
  double reach() const { return problem_.reach; }
  bool stopped() const { return problem_.stop && problem_.stop(); }

  void look() {
    problem_.gradient(theta_, gradient_);
    judge(theta_, gradient_);
  }

  /// Sets whether the sphere constraint is active, the usable part of the gradient, and the multiplier.
  void judge(const Eigen::VectorXd& theta, const ScaledGradient& gradient) {
    const double length = gradient.direction.norm(), radius = problem_.radius;
    const double outward = -gradient.direction.dot(theta);
    on_sphere_ = theta.norm() >= radius * (1 - 1e-12) && outward > 0;
    multiplier_ = on_sphere_ ? outward / (radius * radius) : 0;
    usable_ = gradient.direction + multiplier_ * theta;
    stationarity_ = on_sphere_ ? usable_.norm() / length : length * std::exp(gradient.log_scale);
    if (length == 0) stationarity_ = 0;
  }

  Eigen::VectorXd tangent(const Eigen::VectorXd& x) const {
    return on_sphere_ ? Eigen::VectorXd(x - theta_ * (theta_.dot(x) / theta_.squaredNorm())) : x;
  }

  /// Second derivative of the Lagrangian along x, in units of e^{log_scale} of the current gradient.
  Eigen::VectorXd curve(const Eigen::VectorXd& x) {
    const double h = kDifference * reach() / x.norm();
    problem_.gradient(theta_ + h * x, ahead_);
    problem_.gradient(theta_ - h * x, behind_);
    const Eigen::VectorXd change = ahead_.direction * std::exp(ahead_.log_scale - gradient_.log_scale) -
                                   behind_.direction * std::exp(behind_.log_scale - gradient_.log_scale);
    return tangent(change / (2 * h)) + multiplier_ * x;
  }

  /// Conjugate gradients on the quadratic model, stopped at the edge of the trust region (Steihaug).
  Eigen::VectorXd model_step(double& promised) {
    Eigen::VectorXd x = Eigen::VectorXd::Zero(theta_.size()), curved = x;
    Eigen::VectorXd residual = -tangent(usable_), direction = residual;
    const double start = residual.norm();
    const double enough = start * std::clamp(std::sqrt(stationarity_), 1e-6, 0.1);
    const Index limit = 2 * theta_.size() + 10;
    for (Index k = 0; k < limit && residual.norm() > enough && !stopped(); ++k) {
      const Eigen::VectorXd product = curve(direction);
      const double bend = direction.dot(product), square = residual.squaredNorm();
      const double room = trust_ * trust_ - x.squaredNorm(), along = x.dot(direction), size = direction.squaredNorm();
      const double edge = (std::sqrt(along * along + size * room) - along) / size;
      const double length = bend > 0 ? std::min(square / bend, edge) : edge;
      x += length * direction;
      curved += length * product;
      if (length == edge) break;
      residual -= length * product;
      direction = residual + residual.squaredNorm() / square * direction;
      direction = tangent(direction);
    }
    promised = usable_.dot(x) + x.dot(curved) / 2;
    return x;
  }

  void step() {
    double promised = 0;
    const Eigen::VectorXd move = model_step(promised);
    Eigen::VectorXd next = theta_ + move;
    const double norm = next.norm();
    if (on_sphere_ || norm > problem_.radius) next *= problem_.radius / norm;
    ScaledGradient there;
    problem_.gradient(next, there);
    const Eigen::VectorXd taken = next - theta_;
    const double seen = there.direction.allFinite()
                            ? (gradient_.direction.dot(taken) +
                               there.direction.dot(taken) * std::exp(there.log_scale - gradient_.log_scale)) /
                                  2
                            : 1;
    const double before = stationarity_;
    const bool was_on_sphere = on_sphere_;
    const double ratio = promised < 0 ? seen / promised : -1;
    const bool at_edge = move.norm() > 0.9 * trust_;
    judge(next, there);
    // Close to the minimum the predicted decrease is below rounding; a smaller stationarity is then accepted instead.
    const bool better = before < 1e-4 && stationarity_ <= before / 2 && on_sphere_ == was_on_sphere;
    if (ratio > 0.05 || better) {
      theta_ = std::move(next);
      gradient_ = std::move(there);
      if (ratio > 0.7 && at_edge) trust_ = std::min(2 * trust_, kFar * reach());
      if (ratio < 0.25 && !better) trust_ = 0.5 * move.norm();
    } else {
      judge(theta_, gradient_);
      trust_ = 0.25 * std::min(trust_, move.norm());
    }
  }

  const BallProblem& problem_;
  Eigen::VectorXd theta_, usable_;
  ScaledGradient gradient_, ahead_, behind_;
  double multiplier_ = 0, stationarity_ = 0, trust_ = 0;
  bool on_sphere_ = false;
};

}  // namespace

BallMinimum minimize_on_ball(const BallProblem& problem, Eigen::VectorXd start) {
  return Walker(problem, std::move(start)).walk();
}

}  // namespace attsvm::internal
