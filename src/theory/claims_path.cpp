// Claims about regularization paths: the minimiser over growing balls tends to the SVM.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "attsvm/optimality.h"
#include "attsvm/path.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"

namespace attsvm {
namespace {

constexpr double kAligned = 1e-3;     // 1 − correlation at the largest radius
constexpr double kStationary = 1e-8;  // first-order conditions at every radius

PathSettings path_settings(Parametrization param, std::uint64_t seed) {
  return {.param = param, .radii = {1, 10, 100, 1000}, .starts = 4, .seed = seed};
}

double largest_stationarity(std::span<const PathPoint> points) {
  double largest = 0;
  for (const PathPoint& point : points) largest = std::max(largest, point.stationarity);
  return largest;
}

struct Followed {
  bool applies = false;
  std::vector<PathPoint> points;
};

/// Paths against the SVM of the optimal tokens.
ClaimResult test_path(const Recipe& recipe, Parametrization param, const Claim& claim, const ClaimSettings& settings,
                      Threads& threads) {
  constexpr Index kMostDraws = 4;  // for every task wanted
  const bool factored = param == Parametrization::KQ;
  Tally tally(claim, settings);
  Index draws = 0, unique = 0;
  double stationarity = 0;
  Mean minima;
  std::vector<double> distances;
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(recipe, settings.seed, first, std::min(count, tally.wanted()));
    const auto best = optimal_of(tasks);
    const auto svm =
        solve_verified(attention_problems(tasks, best), factored ? Norm::nuclear() : Norm::frobenius(), threads);
    std::vector<Followed> followed(tasks.size());
    each_task(threads, static_cast<Index>(tasks.size()), [&](std::size_t k, Threads& alone) {
      if (svm[k].status != MarginStatus::optimal || (factored && !svm[k].rank.certified)) return;
      followed[k] = {true, regularization_path(tasks[k], path_settings(param, settings.seed), alone)};
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      ++draws;
      if (!followed[k].applies) continue;
      ++unique;
      const PathPoint& last = followed[k].points.back();
      const double now = distance(last.W, svm[k]), conditions = largest_stationarity(followed[k].points);
      distances.push_back(now);
      stationarity = std::max(stationarity, conditions);
      minima.add(static_cast<double>(last.minima));
      tally.add(tasks[k], now <= kAligned && conditions <= kStationary, now,
                fmt::format("1 - correlation {:.3g} at radius {:g}, stationarity {:.3g}, {}", now, last.radius,
                            conditions, last.selected == best[k] ? "optimal tokens" : "not the optimal tokens"),
                {{"x_W", Array::own(last.W)}});
    }
  });
  tally.figure("median 1 - correlation at radius 1000", median(distances));
  tally.figure("largest stationarity of all points", stationarity);
  tally.figure("mean number of local minima seen", minima.value());
  tally.share("share of draws that are separable and have one solution", unique, draws);
  return std::move(tally).result();
}

/// The selection whose tokens a head can tell apart best, with its SVMs.
struct JointPrediction {
  std::vector<Index> selected;
  MarginSolution head, weights;
  Index relaxed = 0;
};

/// Nothing where the best selection is not clear, not separable, or not of the kind asked for.
std::optional<JointPrediction> predict_joint(const AttentionTask& task, bool tight, Threads& alone) {
  constexpr double kClear = 1e-2;  // relative: how much better than the next one, and how far from the margin
  std::vector<MarginProblem> problems;
  std::vector<Index> tokens(static_cast<std::size_t>(task.queries()), 0);
  do {
    problems.push_back(MarginProblem::value(task, Selection::single(tokens)));
  } while (next_selection(task, tokens));
  auto heads = solve_verified(problems, Norm::frobenius(), alone);
  std::size_t best = heads.size();
  double second = kUnmeasured;
  for (std::size_t k = 0; k < heads.size(); ++k) {
    if (heads[k].status != MarginStatus::optimal) continue;
    if (best == heads.size() || heads[k].objective < heads[best].objective) {
      if (best != heads.size()) second = std::min(second, heads[best].objective);
      best = k;
    } else {
      second = std::min(second, heads[k].objective);
    }
  }
  if (best == heads.size() || second < (1 + kClear) * heads[best].objective) return {};
  JointPrediction found{.head = std::move(heads[best])};
  std::vector<Index> relax;
  for (Index i = 0; i < task.queries(); ++i) {
    found.selected.push_back(problems[best].selection().first(i));
    const double slack = found.head.slack(i);
    if (slack <= kSupportTolerance) continue;
    if (slack < kClear) return {};
    relax.push_back(i);
  }
  if (tight != relax.empty()) return {};
  found.relaxed = static_cast<Index>(relax.size());
  const MarginProblem weights = MarginProblem::attention(task, Selection::single(found.selected), relax);
  found.weights = solve_verified({&weights, 1}, Norm::frobenius(), alone).front();
  if (found.weights.status != MarginStatus::optimal) return {};
  return found;
}

/// Whether the losses of relaxed inputs are out of the way: e^{−r(f_i − Γ)} is below what attention leaks elsewhere,
/// e^{−RΞ}, with Γ and Ξ the margins of head and prompt, r and R their radii.
bool relaxed_are_quiet(const JointPrediction& predicted, double head_radius) {
  for (const double slack : predicted.head.slack) {
    const double beyond = head_radius * slack / predicted.head.objective;
    if (slack > kSupportTolerance && beyond < 1 / predicted.weights.objective) return false;
  }
  return true;
}

/// A joint path whose head has a ball `head_radius` times as large as the prompt's.
struct JointPath {
  double head_radius;
  std::vector<double> to_p, to_v;
  Index aligned_ones = 0, quiet = 0, quiet_aligned = 0, exact = 0;

  /// Whether p and v are where they should be.
  bool add(const JointPrediction& predicted, const std::vector<PathPoint>& points) {
    to_p.push_back(distance(points.back().W, predicted.weights));
    to_v.push_back(distance(points.back().v, predicted.head));
    const bool aligned = std::max(to_p.back(), to_v.back()) <= kAligned;
    exact += largest_stationarity(points) <= kStationary ? 1 : 0;
    const bool is_quiet = relaxed_are_quiet(predicted, head_radius);
    aligned_ones += aligned ? 1 : 0;
    quiet += is_quiet ? 1 : 0;
    quiet_aligned += is_quiet && aligned ? 1 : 0;
    return aligned;
  }
};

ClaimResult test_joint(bool tight, const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  const Recipe recipe{.n = 3, .T = 3, .d = 6, .pattern = QueryPattern::prompt};
  constexpr Index kMostDraws = 24;  // for every task wanted
  Tally tally(claim, settings);
  std::vector<JointPath> kinds{{.head_radius = 1}};
  if (!tight) kinds.insert(kinds.end(), {{.head_radius = 10}, {.head_radius = 100}});
  Index draws = 0, met = 0;
  double stationarity = 0;
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(recipe, settings.seed, first, count);
    std::vector<std::optional<JointPrediction>> predicted(tasks.size());
    each_task(threads, count,
              [&](std::size_t k, Threads& alone) { predicted[k] = predict_joint(tasks[k], tight, alone); });
    std::vector<std::size_t> chosen;
    for (std::size_t k = 0; k < tasks.size() && met < tally.wanted(); ++k) {
      ++draws;
      if (!predicted[k]) continue;
      chosen.push_back(k);
      ++met;
    }
    for (JointPath& kind : kinds) {
      std::vector<std::vector<PathPoint>> paths(chosen.size());
      each_task(threads, static_cast<Index>(chosen.size()), [&](std::size_t k, Threads& alone) {
        PathSettings following = path_settings(Parametrization::p, settings.seed);
        following.joint = true;
        following.head_radius = kind.head_radius;
        paths[k] = regularization_path(tasks[chosen[k]], following, alone);
      });
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const JointPrediction& expected = *predicted[chosen[k]];
        const bool held = kind.add(expected, paths[k]) && largest_stationarity(paths[k]) <= kStationary;
        stationarity = std::max(stationarity, largest_stationarity(paths[k]));
        if (kind.head_radius != 1) continue;
        const double to_p = kind.to_p.back(), to_v = kind.to_v.back();
        const PathPoint& last = paths[k].back();
        tally.add(tasks[chosen[k]], held, std::max(to_p, to_v),
                  fmt::format("1 - correlation {:.3g} of p, {:.3g} of v, stationarity {:.3g}, {} inputs relaxed; |v| = "
                              "{:.3g} and |p| = {:.3g} in their SVMs",
                              to_p, to_v, largest_stationarity(paths[k]), expected.relaxed, expected.head.objective,
                              expected.weights.objective),
                  {{"x_p", Array::own(last.W)}, {"x_v", Array::own(last.v)}});
      }
    }
  });
  for (const JointPath& kind : kinds) {
    const auto count = static_cast<Index>(kind.to_p.size());
    const auto label = [&](std::string_view what) {
      return tight ? std::string(what) : fmt::format("head's ball {:g} R: {}", kind.head_radius, what);
    };
    tally.figure(label("median 1 - correlation of p"), median(kind.to_p));
    tally.figure(label("median 1 - correlation of v"), median(kind.to_v));
    if (tight) continue;
    tally.share(label("share within 1e-3"), kind.aligned_ones, count);
    tally.share(label("share with first-order conditions to 1e-8"), kind.exact, count);
    tally.share(label("share with losses of relaxed inputs below the leak of the others"), kind.quiet, count);
    tally.share(label("share of those within 1e-3"), kind.quiet_aligned, kind.quiet);
  }
  tally.figure("largest stationarity of all points", stationarity);
  tally.share("share of draws of this kind", met, draws);
  return std::move(tally).result();
}

}  // namespace

ClaimResult test_path_w(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_path({.n = 3, .T = 4, .d = 5}, Parametrization::W, claim, settings, threads);
}

ClaimResult test_path_kq(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_path({.n = 3, .T = 4, .d = 5}, Parametrization::KQ, claim, settings, threads);
}

ClaimResult test_path_p(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_path({.n = 2, .T = 4, .d = 6, .pattern = QueryPattern::prompt}, Parametrization::p, claim, settings,
                   threads);
}

ClaimResult test_joint_tight(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_joint(true, claim, settings, threads);
}

ClaimResult test_joint_loose(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_joint(false, claim, settings, threads);
}

}  // namespace attsvm
