#include "attsvm/path.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "attsvm/random.h"
#include "base/decompositions.h"
#include "base/refuse.h"
#include "theory/ball_minimizer.h"
#include "theory/path_limits.h"

namespace attsvm {
namespace {

constexpr double kGrowth = 2;       // largest factor between two radii at which a path is followed
constexpr double kWidestStart = 4;  // largest norm of a random start
constexpr int kRounds = 200;        // of the two balls of joint paths in turn

void require_sensible(const AttentionTask& task, const PathSettings& settings) {
  if (settings.radii.empty()) refuse("radii: at least one is needed");
  for (std::size_t k = 0; k < settings.radii.size(); ++k) {
    const double radius = settings.radii[k];
    if (!(radius > 0 && std::isfinite(radius))) refuse("radii[{}] = {}; must be a number above 0", k, radius);
    if (k > 0 && radius <= settings.radii[k - 1]) {
      refuse("radii[{}] = {}; must be above the one before it, {}", k, radius, settings.radii[k - 1]);
    }
  }
  if (settings.starts < 1) refuse("starts = {}; must be at least 1", settings.starts);
  if (settings.width < 0) refuse("width = {}; must be at least 0", settings.width);
  if (!(settings.tolerance > 0)) refuse("tolerance = {}; must be > 0", settings.tolerance);
  if (!(settings.head_radius > 0)) refuse("head_radius = {}; must be > 0", settings.head_radius);
  if (settings.param == Parametrization::p && task.query_size() != 1) {
    refuse("param p needs prompt attention; this task has dz = {}", task.query_size());
  }
  const HeadKind head = task.head().kind;
  if (settings.joint && head != HeadKind::linear && head != HeadKind::none) {
    refuse("a joint path needs a linear head; this one is {}", name_of(head));
  }
  if (!settings.joint && head == HeadKind::none) refuse("head is missing; the loss needs one");
}

/// One start, followed through the radii. Its point is θ (W, or K and Q one after the other) and v.
class Follower {
 public:
  Follower(const AttentionTask& task, const PathSettings& settings, Threads& threads)
      : task_(task),
        settings_(settings),
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
    double longest_key = 0, longest_query = 0;
    for (Index s = 0; s < task.sequences(); ++s) {
      longest_key = std::max(longest_key, task.keys(s).rowwise().norm().maxCoeff());
    }
    for (Index i = 0; i < task.queries(); ++i) longest_query = std::max(longest_query, task.query(i).norm());
    sensitivity_ = std::max(longest_key * longest_query, 1e-300);
  }

  /// Begins at a random point of the ball; start 0 of a joint path keeps the task's own head, if it has one.
  void begin_anywhere(std::uint32_t start, double radius) {
    theta_.resize(factored() ? (d_ + dz_) * width_ : d_ * dz_);
    Random(settings_.seed, start, 0).normals({theta_.data(), static_cast<std::size_t>(theta_.size())});
    theta_ *= ball(std::min(radius, kWidestStart)) / theta_.norm();
    radius_ = radius;
    if (!settings_.joint) return;
    Eigen::VectorXd& v = head_.v;
    const bool drawn = start > 0 || head_.kind == HeadKind::none;
    head_.kind = HeadKind::linear;
    v.conservativeResize(task_.value_size());
    if (drawn) Random(settings_.seed, start, 1).normals({v.data(), static_cast<std::size_t>(v.size())});
    v *= settings_.head_radius * radius / std::max(v.norm(), 1e-300);
  }

  /// Begins in a direction, at the edge of the ball.
  void begin_along(const PathLimits::Limit& limit, double radius) {
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

  /// Minimises at this radius, by way of radii between.
  void follow(double radius) {
    for (double between = radius_ * kGrowth; between < radius; between *= kGrowth) settle(between);
    settle(radius);
  }

  PathPoint point() {
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

 private:
  bool factored() const { return settings_.param == Parametrization::KQ; }
  double ball(double radius) const { return factored() ? std::sqrt(2 * radius) : radius; }

  void unpack(const Eigen::VectorXd& theta, RowMatrix& W, RowMatrix& K, RowMatrix& Q) const {
    if (factored()) {
      K = ConstRows(theta.data(), d_, width_);
      Q = ConstRows(theta.data() + d_ * width_, dz_, width_);
      W.noalias() = K * Q.transpose();
    } else {
      W = ConstRows(theta.data(), d_, dz_);
    }
  }

  void gradient(const Eigen::VectorXd& theta, ScaledGradient& out) {
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

  void settle(double radius) {
    // Logits grow with the radius; what tells tokens apart does not. Keep the offsets and lengthen the direction.
    const double stretch = ball(radius) / std::max(theta_.norm(), 1e-300);
    if (!inside_) theta_ *= factored() ? stretch : std::max(stretch, 1.0);
    if (settings_.joint) head_.v *= radius / radius_;
    radius_ = radius;
    double head_stationarity = 0;
    for (int round = 0; round < (settings_.joint ? kRounds : 1); ++round) {
      settle_weights();
      if (!settings_.joint) break;
      head_stationarity = settle_head();
      ScaledGradient again;
      gradient(theta_, again);
      if (std::max(head_stationarity, weight_stationarity(again)) <= settings_.tolerance) break;
    }
    if (settings_.joint) {
      ScaledGradient again;
      gradient(theta_, again);
      stationarity_ = std::max(head_stationarity, weight_stationarity(again));
    }
  }

  double weight_stationarity(const ScaledGradient& gradient) const {
    const double length = gradient.direction.norm(), outward = -gradient.direction.dot(theta_);
    if (length == 0) return 0;
    if (inside_ || outward <= 0) return length * std::exp(gradient.log_scale);
    return (gradient.direction + outward / theta_.squaredNorm() * theta_).norm() / length;
  }

  void settle_weights() {
    minimize_weights();
    if (!factored()) return;
    for (Index tries = 0; tries < width_ && !inside_ && escape_low_rank(); ++tries) minimize_weights();
    stationarity_ = std::max(stationarity_, excess_slope_);
  }

  void minimize_weights() {
    const double size = factored() ? theta_.norm() * sensitivity_ : sensitivity_;
    const BallProblem problem{
        .gradient = [this](const Eigen::VectorXd& theta, ScaledGradient& out) { gradient(theta, out); },
        .radius = ball(radius_),
        .reach = 1 / size,
        .tolerance = settings_.joint ? settings_.tolerance / 4 : settings_.tolerance};
    BallMinimum minimum = minimize_on_ball(problem, std::move(theta_));
    theta_ = std::move(minimum.theta);
    stationarity_ = minimum.stationarity;
    inside_ = minimum.inside;
    iterations_ += minimum.iterations;
  }

  /// (K,Q) of too low a rank can be stationary without being minimal: their gradient GQ, GᵀK does not see directions
  /// in which both vanish. On the nuclear ball the loss falls along −u vᵀ if σ₁(G) exceeds the multiplier; a little of
  /// it then takes the place of the weakest column. True: there was such a direction, and θ has left for it.
  bool escape_low_rank() {
    constexpr double kSlope = 1e-9, kStep = 1e-3;
    unpack(theta_, W_, K_, Q_);
    pass_.evaluate(W_, head_, {}, found_);
    const Eigen::BDCSVD<Eigen::MatrixXd> slope(found_.W.direction, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const double multiplier = -found_.W.direction.cwiseProduct(W_).sum() / radius_;
    excess_slope_ = std::max(0.0, slope.singularValues()(0) / multiplier - 1);
    if (excess_slope_ <= kSlope) return false;
    const Eigen::BDCSVD<Eigen::MatrixXd> parts(W_, Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Index count = std::min(width_, parts.singularValues().size());
    K_.setZero();
    Q_.setZero();
    for (Index j = 0; j < count; ++j) {
      const double root = std::sqrt(parts.singularValues()(j));
      K_.col(j) = root * parts.matrixU().col(j);
      Q_.col(j) = root * parts.matrixV().col(j);
    }
    K_.col(width_ - 1) = -kStep * std::sqrt(radius_) * slope.matrixU().col(0);
    Q_.col(width_ - 1) = kStep * std::sqrt(radius_) * slope.matrixV().col(0);
    Eigen::Map<RowMatrix>(theta_.data(), d_, width_) = K_;
    Eigen::Map<RowMatrix>(theta_.data() + d_ * width_, dz_, width_) = Q_;
    return true;
  }

  double settle_head() {
    unpack(theta_, W_, K_, Q_);
    double largest = 0;
    for (Index s = 0; s < task_.sequences(); ++s) {
      largest = std::max(largest, task_.values(s).rowwise().norm().maxCoeff());
    }
    Head head = head_;
    const BallProblem problem{.gradient =
                                  [&](const Eigen::VectorXd& v, ScaledGradient& out) {
                                    head.v = v;
                                    pass_.evaluate(W_, head, {}, found_);
                                    out.direction = found_.v.direction.reshaped();
                                    out.log_scale = found_.v.log_scale;
                                  },
                              .radius = settings_.head_radius * radius_,
                              .reach = 1 / std::max(largest, 1e-300),
                              .tolerance = settings_.tolerance / 4};
    const BallMinimum minimum = minimize_on_ball(problem, head_.v);
    head_.v = minimum.theta;
    iterations_ += minimum.iterations;
    return minimum.stationarity;
  }

  const AttentionTask& task_;
  const PathSettings& settings_;
  GradientPass pass_;
  Head head_;
  Index d_, dz_, width_;
  Threads& threads_;
  double sensitivity_ = 1;
  Eigen::VectorXd theta_;
  double radius_ = 0, stationarity_ = 0;
  double excess_slope_ = 0;  // how far σ₁(G) is above the multiplier, relative to it
  bool inside_ = false;
  Index iterations_ = 0;
  RowMatrix W_, K_, Q_;
  LossGradient found_;
};

}  // namespace

std::vector<PathPoint> regularization_path(const AttentionTask& task, const PathSettings& settings, Threads& threads) {
  require_sensible(task, settings);
  PathLimits limits(task, settings.param, settings.joint, threads);
  std::vector<PathPoint> best;
  std::vector<std::set<std::vector<Index>>> seen(settings.radii.size());
  // Where the least loss is not known, log_excess is log L, which losses below zero do not have.
  const bool by_loss = settings.loss == Loss::linear && (settings.joint || task.head().kind != HeadKind::linear);
  const auto consider = [&](std::size_t k, PathPoint point) {
    seen[k].insert(point.selected);
    if (k == best.size()) {
      best.push_back(std::move(point));
    } else if (by_loss ? point.loss < best[k].loss : point.log_excess < best[k].log_excess) {
      best[k] = std::move(point);
    }
    best[k].minima = static_cast<Index>(seen[k].size());
  };
  const auto stop = [&](Index start, double radius) { return settings.progress && settings.progress(start, radius); };
  bool stopped = false;
  for (Index start = 0; start < settings.starts && !stopped; ++start) {
    Follower follower(task, settings, threads);
    follower.begin_anywhere(static_cast<std::uint32_t>(start), settings.radii.front());
    for (std::size_t k = 0; k < settings.radii.size() && !(stopped = stop(start, settings.radii[k])); ++k) {
      follower.follow(settings.radii[k]);
      consider(k, follower.point());
    }
  }
  if (const PathLimits::Limit* predicted = stopped ? nullptr : limits.prediction()) {
    Follower follower(task, settings, threads);
    for (std::size_t k = 0; k < settings.radii.size() && !stop(settings.starts, settings.radii[k]); ++k) {
      follower.begin_along(*predicted, settings.radii[k]);
      consider(k, follower.point());
    }
  }
  for (PathPoint& point : best) limits.compare(point);
  return best;
}

}  // namespace attsvm
