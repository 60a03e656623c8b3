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

PathSettings path_settings(Parametrization param, bool joint, std::uint64_t seed) {
  return {.param = param, .joint = joint, .radii = {1, 10, 100, 1000}, .starts = 4, .seed = seed};
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
      followed[k] = {true, regularization_path(tasks[k], path_settings(param, false, settings.seed), alone)};
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

/// A task with the head v of a run, so that the counter-example file shows what was found.
std::map<std::string, Array> joint_extras(const PathPoint& point) {
  return {{"x_p", Array::own(point.W)}, {"x_v", Array::own(point.v)}};
}

ClaimResult test_joint(bool tight, const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  const Recipe recipe{.n = 3, .T = 3, .d = 6, .pattern = QueryPattern::prompt};
  constexpr Index kMostDraws = 24;  // for every task wanted
  Tally tally(claim, settings);
  Index draws = 0, met = 0, other_selection = 0, worse = 0;
  double stationarity = 0;
  std::vector<double> weights, heads;
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(recipe, settings.seed, first, count);
    std::vector<std::optional<JointPrediction>> predicted(tasks.size());
    each_task(threads, count,
              [&](std::size_t k, Threads& alone) { predicted[k] = predict_joint(tasks[k], tight, alone); });
    std::vector<std::size_t> chosen;
    Index seen = 0;
    for (std::size_t k = 0; k < tasks.size() && met < tally.wanted(); ++k, ++seen) {
      if (!predicted[k]) continue;
      chosen.push_back(k);
      ++met;
    }
    draws += seen;
    std::vector<std::vector<PathPoint>> paths(chosen.size());
    each_task(threads, static_cast<Index>(chosen.size()), [&](std::size_t k, Threads& alone) {
      paths[k] = regularization_path(tasks[chosen[k]], path_settings(Parametrization::p, true, settings.seed), alone);
    });
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const JointPrediction& expected = *predicted[chosen[k]];
      const PathPoint& last = paths[k].back();
      const double conditions = largest_stationarity(paths[k]);
      const double to_p = distance(last.W, expected.weights), to_v = distance(last.v, expected.head);
      const bool same = last.selected == expected.selected;
      other_selection += same ? 0 : 1;
      worse += conditions > kStationary ? 1 : 0;
      weights.push_back(to_p);
      heads.push_back(to_v);
      stationarity = std::max(stationarity, conditions);
      tally.add(tasks[chosen[k]], std::max(to_p, to_v) <= kAligned && conditions <= kStationary, std::max(to_p, to_v),
                fmt::format("1 - correlation {:.3g} of p, {:.3g} of v, stationarity {:.3g}, {} inputs relaxed, {}",
                            to_p, to_v, conditions, expected.relaxed,
                            same ? "the tokens of the largest label margin" : "other tokens than those predicted"),
                joint_extras(last));
    }
  });
  tally.figure("median 1 - correlation of p", median(weights));
  tally.figure("median 1 - correlation of v", median(heads));
  tally.figure("largest stationarity of all points", stationarity);
  tally.share("share of paths above a stationarity of 1e-8", worse, static_cast<Index>(weights.size()));
  tally.share("share of paths that end at other tokens", other_selection, static_cast<Index>(weights.size()));
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
