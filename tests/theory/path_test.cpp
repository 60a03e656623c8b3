// Regularization paths: their starts, the numbers they report, and how they stop.
#include <cmath>

#include "linear_algebra.h"
#include "support.h"
#include "theory/ball_minimizer.h"
#include "train/gradient.h"

namespace attsvm {
namespace {

AttentionTask random_task(const Recipe& recipe, std::uint64_t seed) { return generate(recipe, seed).task; }

TEST(PathStarts, BeginBeforeTheSoftmaxHasChosen) {
  // Random points of a large ball are nearly minima already, each with its own selection.
  Threads threads(1);
  Index by_way = 0, at_once = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const AttentionTask task = random_task({.n = 6, .T = 8, .d = 6}, seed);
    by_way += regularization_path(task, {.radii = {1, 10, 100}}, threads).points.back().minima;
    at_once += regularization_path(task, {.radii = {100}}, threads).points.back().minima;
  }
  EXPECT_LE(at_once, 2 * by_way);
}

/// σ₁(G)/μ − 1 of a point, from its own gradient; inside the ball σ₁(G).
double slope_of(const AttentionTask& task, const PathPoint& point, Threads& threads) {
  Head head = task.head();
  if (point.v.size() > 0) {
    head.kind = HeadKind::linear;
    head.v = point.v;
  }
  LossGradient found;
  GradientPass(task, {}, threads).evaluate(point.W, head, {}, found);
  const RowMatrix& G = found.W.direction;
  const double largest = test::svd_of(G).sigma(0);
  if (point.inside) return largest * std::exp(found.W.log_scale);
  return largest / (-G.cwiseProduct(point.W).sum() / point.radius) - 1;
}

TEST(FactoredPaths, StateTheSlopeTowardsHigherRank) {
  // A tight tolerance leaves no slope; with a loose one, the remaining slope must be reported.
  Threads threads(1);
  for (const bool joint : {false, true}) {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const AttentionTask task = random_task({.n = 3, .T = 3, .d = 6}, seed);
      for (const double tolerance : {1e-8, 1e-3, 1e-2}) {
        const auto points = regularization_path(task,
                                                {.param = Parametrization::KQ,
                                                 .joint = joint,
                                                 .radii = {1, 10, 100},
                                                 .starts = 2,
                                                 .tolerance = tolerance},
                                                threads)
                                .points;
        for (const PathPoint& point : points) {
          if (tolerance == 1e-8) {
            EXPECT_LE(point.stationarity, tolerance);
          }
          EXPECT_LE(slope_of(task, point, threads), point.stationarity + 1e-13)
              << (joint ? "joint, " : "") << "radius " << point.radius << ", tolerance " << tolerance;
        }
      }
    }
  }
}

TEST(FactoredPaths, OfFewColumnsMeetTheirOwnConditions) {
  // A single column cannot follow every direction in which the loss falls, so σ₁(G)/μ − 1 does not apply.
  Threads threads(1);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const AttentionTask task = random_task({.n = 6, .T = 8, .d = 6}, seed);
    const auto points =
        regularization_path(task, {.param = Parametrization::KQ, .width = 1, .radii = {1, 10, 100}, .starts = 2},
                            threads)
            .points;
    for (const PathPoint& point : points) {
      EXPECT_LE(point.stationarity, 1e-8) << "radius " << point.radius;
      EXPECT_NEAR(point.norm, point.radius, 1e-9 * point.radius);
    }
  }
}

TEST(PathStops, AreHeardInsideAMinimisation) {
  Threads threads(1);
  const AttentionTask task = random_task({.n = 6, .T = 8, .d = 10}, 1);
  for (const bool joint : {false, true}) {
    int asked = 0;
    PathSettings settings{
        .joint = joint, .radii = {100, 1000}, .progress = [&](const PathProgress&) { return ++asked > 5; }};
    const auto [points, complete] = regularization_path(task, settings, threads);
    EXPECT_EQ(asked, 6) << "once is enough";
    EXPECT_FALSE(complete);
    ASSERT_EQ(points.size(), 1U) << "the point under way is kept";
    EXPECT_EQ(points.front().radius, 100);
    EXPECT_NEAR(points.front().norm, 100, 1e-9);
    EXPECT_GT(points.front().stationarity, settings.tolerance) << "and says that it is not there";
    EXPECT_TRUE(std::isfinite(points.front().correlation)) << "small SVMs are solved all the same";
  }
}

TEST(PathStops, DoNotLoseABetterPoint) {
  Threads threads(1);
  const AttentionTask task = random_task({.n = 3, .T = 4, .d = 5}, 1);
  const auto whole = regularization_path(task, {.radii = {1, 10}, .starts = 1}, threads).points;
  int asked = 0;
  PathSettings counting{.radii = {1, 10}, .starts = 1, .progress = [&](const PathProgress&) { return ++asked < 0; }};
  regularization_path(task, counting, threads);
  const int all = asked;
  double before = 1e300;
  for (int most = 1; most <= all; most += 1 + all / 20) {
    asked = 0;
    PathSettings settings{
        .radii = {1, 10}, .starts = 1, .progress = [&](const PathProgress&) { return ++asked > most; }};
    const auto [points, complete] = regularization_path(task, settings, threads);
    if (points.empty()) continue;
    EXPECT_GE(points.front().log_excess, whole.front().log_excess - 1e-9);
    EXPECT_LE(points.front().log_excess, before + 1e-12) << "more time, no worse";
    before = points.front().log_excess;
  }
}

TEST(BallMinimizer, EndsWhereItIsWhenTold) {
  int asked = 0, gradients = 0;
  const BallProblem problem{.gradient =
                                [&](const Eigen::VectorXd& theta, ScaledGradient& out) {
                                  ++gradients;
                                  out.direction = theta.array().exp();
                                },
                            .stop = [&] { return ++asked > 3; },
                            .radius = 5};
  const BallMinimum minimum = minimize_on_ball(problem, Eigen::VectorXd::LinSpaced(20, -1, 1));
  EXPECT_GT(minimum.stationarity, problem.tolerance);
  EXPECT_LE(minimum.theta.norm(), 5 * (1 + 1e-12));
  EXPECT_LE(gradients, 12);
}

TEST(LinearLossPaths, EndInTheSvm) {
  Threads threads(1);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const AttentionTask task = random_task({.n = 3, .T = 4, .d = 5}, seed);
    const auto points =
        regularization_path(task, {.loss = Loss::linear, .radii = {1, 10, 100, 1000}, .starts = 3}, threads).points;
    for (std::size_t k = 0; k < points.size(); ++k) {
      EXPECT_LE(points[k].stationarity, 1e-8) << "radius " << points[k].radius;
      if (k > 0) {
        EXPECT_LT(points[k].log_excess, points[k - 1].log_excess);
      }
    }
    EXPECT_GT(points.back().correlation, 1 - 1e-3);
  }
}

TEST(LinearLossPaths, AreComparedByTheirLossWhereTheLeastOneIsNotKnown) {
  // The loss −y f is negative, so there is no log L by which other losses are compared.
  Threads threads(1);
  const AttentionTask task = generate({.law = Law::joint_training, .c = 1}, 0).task;
  const auto follow = [&](Index starts) {
    return regularization_path(task,
                               {.param = Parametrization::p,
                                .joint = true,
                                .loss = Loss::linear,
                                .radii = {1, 10, 100},
                                .starts = starts},
                               threads)
        .points;
  };
  const auto one = follow(1), many = follow(6);
  for (std::size_t k = 0; k < many.size(); ++k) {
    EXPECT_LT(many[k].loss, 0);
    EXPECT_LE(many[k].loss, one[k].loss + 1e-12) << "more starts, no worse";
    EXPECT_LE(many[k].stationarity, 1e-8);
  }
  EXPECT_LT(many.back().loss, many.front().loss);
}

}  // namespace
}  // namespace attsvm
