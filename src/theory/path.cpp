#include <cmath>
#include <set>

#include "attsvm/theory.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "theory/path_follower.h"
#include "theory/path_limits.h"

namespace attsvm {

using namespace internal;

namespace {

void require_suitable(const AttentionTask& task, const PathSettings& settings) {
  if (task.next_token()) refuse("a next-token task has no head; paths need one");
  if (settings.param == Parametrization::p && task.query_size() != 1) {
    refuse("param p needs prompt attention; this task has dz = {}", task.query_size());
  }
  const HeadKind head = task.head().kind;
  if (settings.joint && head != HeadKind::linear && head != HeadKind::none) {
    refuse("a joint path needs a linear head; this one is {}", name_of(head));
  }
  if (!settings.joint && head == HeadKind::none) refuse("head is missing; the loss needs one");
}

}  // namespace

void require_radii(const std::vector<double>& radii) {
  if (radii.empty()) refuse("radii: at least one is needed");
  for (std::size_t k = 0; k < radii.size(); ++k) {
    if (!(radii[k] > 0 && std::isfinite(radii[k]))) refuse("radii[{}] = {}; must be a number above 0", k, radii[k]);
    if (k > 0 && radii[k] <= radii[k - 1]) {
      refuse("radii[{}] = {}; must be above the one before it, {}", k, radii[k], radii[k - 1]);
    }
  }
}

RegularizationPath regularization_path(const AttentionTask& task, const PathSettings& settings, Threads& threads) {
  require_radii(settings.radii);
  if (settings.starts < 1) refuse("starts = {}; must be at least 1", settings.starts);
  if (settings.width < 0) refuse("width = {}; must be at least 0", settings.width);
  if (!(settings.tolerance > 0)) refuse("tolerance = {}; must be > 0", settings.tolerance);
  if (!(settings.head_radius > 0)) refuse("head_radius = {}; must be > 0", settings.head_radius);
  require_suitable(task, settings);
  const std::vector<double>& radii = settings.radii;
  const TimeLimit limit(settings.time_limit);
  PathProgress now;
  bool stopped = false;  // stays true: the callback is not called again once it returned true
  const std::function<bool()> stop = [&] {
    stopped = stopped || limit.over() || (settings.progress && settings.progress(now));
    ++now.iteration;
    return stopped;
  };
  const auto stop_at = [&](Index start, double radius) {
    now = {start, radius, 0};
    return stop();
  };
  PathLimits limits(task, settings.param, settings.joint ? settings.head_radius : 0, stop, threads);
  std::vector<PathPoint> best;
  std::vector<std::set<std::vector<Index>>> seen(radii.size());
  // Where the least loss is not known, log_excess is log L, which is undefined for losses below zero.
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
  for (Index start = 0; start < settings.starts && !stopped; ++start) {
    PathFollower follower(task, settings, stop, threads);
    follower.begin_anywhere(static_cast<std::uint32_t>(start), radii.front());
    for (std::size_t k = 0; k < radii.size() && !stop_at(start, radii[k]); ++k) {
      follower.follow(radii[k]);
      consider(k, follower.point());
    }
  }
  if (const PathLimits::Limit* predicted = stopped ? nullptr : limits.prediction()) {
    PathFollower follower(task, settings, stop, threads);
    for (std::size_t k = 0; k < radii.size() && !stop_at(settings.starts, radii[k]); ++k) {
      follower.begin_along(*predicted, radii[k]);
      consider(k, follower.point());
    }
  }
  for (PathPoint& point : best) limits.compare(point);
  return {std::move(best), !stopped};
}

}  // namespace attsvm
