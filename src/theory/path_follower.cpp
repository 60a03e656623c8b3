#include "theory/path_follower.h"

#include <algorithm>
#include <cmath>

#include "base/decompositions.h"
#include "base/random.h"
#include "train/gradient.h"

namespace attsvm::internal {
namespace {

constexpr double kGrowth = 2;       // largest factor between two radii at which a path is followed
constexpr double kWidestStart = 4;  // largest radius of a random start
constexpr int kRounds = 200;        // of alternating between the two balls of a joint path
constexpr double kNewColumn =
    1e-3;  // size of a column that raises the rank of (K,Q), relative to the root of the radius
constexpr double kTiny = 1e-300;

}  // namespace

PathFollower::PathFollower(const AttentionTask& task, const PathSettings& settings, const std::function<bool()>& stop,
                           Threads& threads)
    : task_(task),
      settings_(settings),
      stop_(stop),
      pass_(task,
            {.loss = settings.loss,
             .head_gradient = settings.joint,
             .excess = !settings.joint && task.head().kind == HeadKind::linear},
            threads),
      head_(task.head()),
      d_(task.key_size()),
      dz_(task.query_size()),
      width_(settings.width > 0 ? settings.width : std::min(d_, dz_)),
      threads_(threads) {
  double key = 0, query = 0, value = 0;
  for (Index i = 0; i < task.queries(); ++i) {
    key = std::max(key, task.seen_keys(i).rowwise().norm().maxCoeff());
    value = std::max(value, task.seen_values(i).rowwise().norm().maxCoeff());
    query = std::max(query, task.query(i).norm());
  }
  key_reach_ = 1 / std::max(key * query, kTiny);
  value_reach_ = 1 / std::max(value, kTiny);
}

void PathFollower::begin_anywhere(std::uint32_t start, double radius) {
  radius_ = std::min(radius, kWidestStart);
  theta_.resize(factored() ? (d_ + dz_) * width_ : d_ * dz_);
  Random(settings_.seed, start, 0).normals({theta_.data(), static_cast<std::size_t>(theta_.size())});
  theta_ *= ball(radius_) / theta_.norm();
  if (!settings_.joint) return;
  Eigen::VectorXd& v = head_.v;
  const bool drawn = start > 0 || head_.kind == HeadKind::none;
  head_.kind = HeadKind::linear;
  v.conservativeResize(task_.value_size());
  if (drawn) Random(settings_.seed, start, 1).normals({v.data(), static_cast<std::size_t>(v.size())});
  v *= settings_.head_radius * radius_ / std::max(v.norm(), kTiny);
}

void PathFollower::begin_along(const PathLimits::Limit& limit, double radius) {
  const MarginSolution& direction = limit.weights;
  if (factored()) {
    theta_.setZero((d_ + dz_) * width_);
    const Index columns = std::min(width_, direction.K.cols());
    Eigen::Map<RowMatrix>(theta_.data(), d_, width_).leftCols(columns) = direction.K.leftCols(columns);
    Eigen::Map<RowMatrix>(theta_.data() + d_ * width_, dz_, width_).leftCols(columns) = direction.Q.leftCols(columns);
  } else {
    theta_ = direction.W.reshaped<Eigen::RowMajor>();
  }
  theta_ *= ball(radius) / theta_.norm();
  if (settings_.joint) {
    head_.kind = HeadKind::linear;
    head_.v = limit.head.W * (settings_.head_radius * radius / limit.head.objective);
  }
  inside_ = false;
  radius_ = radius;
  settle(radius);
}

void PathFollower::follow(double radius) {
  for (double next = settled_ ? radius_ * kGrowth : radius_; next < radius && !stop_(); next *= kGrowth) settle(next);
  settle(radius);
}

PathPoint PathFollower::point() {
  PathPoint point;
  point.radius = radius_;
  unpack(theta_, point.W, point.K, point.Q);
  LossGradient found;
  pass_.evaluate(point.W, head_, {}, found);
  point.loss = found.loss;
  point.log_loss = found.log_loss;
  point.log_excess = settings_.joint || head_.kind != HeadKind::linear ? found.log_loss : found.log_excess;
  point.norm = factored() ? theta_.squaredNorm() / 2 : theta_.norm();
  if (settings_.joint) {
    point.v = head_.v;
    point.head_norm = head_.v.norm();
  }
  point.stationarity = stationarity_;
  point.inside = inside_;
  point.iterations = iterations_;
  point.selected = attention_map(task_, point.W, threads_).selected;
  return point;
}

double PathFollower::ball(double radius) const { return factored() ? std::sqrt(2 * radius) : radius; }

void PathFollower::unpack(const Eigen::VectorXd& theta, RowMatrix& W, RowMatrix& K, RowMatrix& Q) const {
  if (factored()) {
    K = ConstRows(theta.data(), d_, width_);
    Q = ConstRows(theta.data() + d_ * width_, dz_, width_);
    W.noalias() = K * Q.transpose();
  } else {
    W = ConstRows(theta.data(), d_, dz_);
  }
}

void PathFollower::gradient(const Eigen::VectorXd& theta, ScaledGradient& out) {
  unpack(theta, W_, K_, Q_);
  pass_.evaluate(W_, head_, {}, found_);
  out.log_scale = found_.W.log_scale;
  out.direction.resize(theta.size());
  if (factored()) {
    Eigen::Map<RowMatrix>(out.direction.data(), d_, width_) = found_.W.direction * Q_;
    Eigen::Map<RowMatrix>(out.direction.data() + d_ * width_, dz_, width_) = found_.W.direction.transpose() * K_;
  } else {
    Eigen::Map<RowMatrix>(out.direction.data(), d_, dz_) = found_.W.direction;
  }
}

void PathFollower::settle(double radius) {
  // Logits grow with the radius, but differences between kept tokens do not: keep the offsets and lengthen the
  // direction.
  const double stretch = ball(radius) / std::max(theta_.norm(), kTiny);
  if (!inside_) theta_ *= factored() ? stretch : std::max(stretch, 1.0);
  if (settings_.joint) head_.v *= radius / radius_;
  radius_ = radius;
  settled_ = true;
  for (int round = 0; round < kRounds; ++round) {
    settle_weights();
    if (!settings_.joint) return;
    const double head = settle_head();
    stationarity_ = std::max(head, weight_stationarity());  // the head changed, and the gradient with it
    if (stationarity_ <= settings_.tolerance || stop_()) return;
  }
}

double PathFollower::weight_stationarity() {
  ScaledGradient here;
  gradient(theta_, here);
  const double length = here.direction.norm(), outward = -here.direction.dot(theta_);
  double tangent = 0;
  if (inside_ || outward <= 0) {
    tangent = length > 0 ? length * std::exp(here.log_scale) : 0;
  } else {
    tangent = (here.direction + outward / theta_.squaredNorm() * theta_).norm() / length;
  }
  return factored() ? std::max(tangent, rank_slope()) : tangent;
}

void PathFollower::settle_weights() {
  minimize_weights();
  if (!factored()) return;
  for (Index raised = 0;; ++raised) {
    const double slope = rank_slope();
    stationarity_ = std::max(stationarity_, slope);
    if (slope <= settings_.tolerance / 10 || !has_room_ || raised == width_ || stop_()) return;
    raise_rank();
    minimize_weights();
  }
}

void PathFollower::minimize_weights() {
  const BallProblem problem{
      .gradient = [this](const Eigen::VectorXd& theta, ScaledGradient& out) { gradient(theta, out); },
      .stop = stop_,
      .radius = ball(radius_),
      .reach = factored() ? key_reach_ / std::max(theta_.norm(), kTiny) : key_reach_,
      .tolerance = settings_.joint ? settings_.tolerance / 4 : settings_.tolerance};
  BallMinimum minimum = minimize_on_ball(problem, std::move(theta_));
  theta_ = std::move(minimum.theta);
  stationarity_ = minimum.stationarity;
  inside_ = minimum.inside;
  iterations_ += minimum.iterations;
}

double PathFollower::settle_head() {
  unpack(theta_, W_, K_, Q_);
  Head head = head_;
  const BallProblem problem{.gradient =
                                [&](const Eigen::VectorXd& v, ScaledGradient& out) {
                                  head.v = v;
                                  pass_.evaluate(W_, head, {}, found_);
                                  out.direction = found_.v.direction.reshaped();
                                  out.log_scale = found_.v.log_scale;
                                },
                            .stop = stop_,
                            .radius = settings_.head_radius * radius_,
                            .reach = value_reach_,
                            .tolerance = settings_.tolerance / 4};
  const BallMinimum minimum = minimize_on_ball(problem, head_.v);
  head_.v = minimum.theta;
  iterations_ += minimum.iterations;
  return minimum.stationarity;
}

/// (K,Q) of too low a rank can be stationary without being minimal: their gradient GQ, GᵀK does not see directions in
/// which both vanish. The loss falls along −u vᵀ if σ₁(G) exceeds the multiplier μ of the nuclear ball. Returns by how
/// much, relative to μ (inside the ball: σ₁(G) itself); 0 if the width forbids another column. (Where K and Q have full
/// rank the result is as small as their gradient.)
double PathFollower::rank_slope() {
  unpack(theta_, W_, K_, Q_);
  const Eigen::VectorXd sigma = singular_values(W_);
  const Index count = sigma.size();
  has_room_ = width_ > count || sigma(width_ - 1) <= kNewColumn * kNewColumn * radius_;
  if (!has_room_ && width_ < count) return 0;
  pass_.evaluate(W_, head_, {}, found_);
  const RowMatrix& G = found_.W.direction;
  const ThinSvd slopes = thin_svd(G);
  const double steepest = slopes.sigma(0), multiplier = -G.cwiseProduct(W_).sum() / radius_;
  steepest_left_ = slopes.U.col(0);
  steepest_right_ = slopes.V.col(0);
  if (steepest == 0) return 0;
  if (inside_ || multiplier <= 0) return steepest * std::exp(found_.W.log_scale);
  return std::max(0.0, steepest / multiplier - 1);
}

/// Replaces the weakest column by a small multiple of the direction that rank_slope() found.
void PathFollower::raise_rank() {
  const ThinSvd parts = thin_svd(W_);
  const Index count = std::min(width_, parts.sigma.size());
  K_.setZero();
  Q_.setZero();
  for (Index j = 0; j < count; ++j) {
    const double root = std::sqrt(parts.sigma(j));
    K_.col(j) = root * parts.U.col(j);
    Q_.col(j) = root * parts.V.col(j);
  }
  K_.col(width_ - 1) = -kNewColumn * std::sqrt(radius_) * steepest_left_;
  Q_.col(width_ - 1) = kNewColumn * std::sqrt(radius_) * steepest_right_;
  Eigen::Map<RowMatrix>(theta_.data(), d_, width_) = K_;
  Eigen::Map<RowMatrix>(theta_.data() + d_ * width_, dz_, width_) = Q_;
}

}  // namespace attsvm::internal
