// Claims about regularization paths: the minimiser over growing balls tends to the SVM.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "attsvm/theory.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/joint_svm.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

constexpr double kPathAligned = 1e-3;  // 1 − correlation at the largest radius
constexpr double kStationary = 1e-8;   // first-order conditions at every radius

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
  constexpr Index kMostDraws = 4;  // per task wanted
  const bool factored = param == Parametrization::KQ;
  Tally tally(claim, settings);
  Index draws = 0, unique = 0;
  double stationarity = 0;
  Mean minima;
  std::vector<double> distances;
  tally.continues(draws, unique, stationarity, minima, distances);
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(recipe, {settings.seed, first, std::min(count, tally.wanted())}, threads);
    const auto best = optimal_of(tasks);
    const auto svm =
        solve_verified(attention_problems(tasks, best), factored ? Norm::nuclear() : Norm::frobenius(), threads);
    std::vector<Followed> followed(tasks.size());
    tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
      if (svm[k].status != MarginStatus::optimal || (factored && !svm[k].rank.certified)) return;
      followed[k] = {true, regularization_path(tasks[k], path_settings(param, settings.seed), alone).points};
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
      tally.add(tasks[k], now <= kPathAligned && conditions <= kStationary, now,
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
  MarginSolution head;
  MarginSolution relaxed;  // the p-SVM in which inputs that are no support vectors of v need only be level
  Index off_margin = 0;    // how many these are
};

/// nullopt if the best selection is not clear, not separable, or not of the kind asked for.
std::optional<JointPrediction> predict_joint(const AttentionTask& task, bool tight, Threads& alone) {
  constexpr double kClear = 1e-2;  // relative: how much better than the next one, and how far from the margin
  std::vector<MarginProblem> problems;
  std::vector<Index> tokens = first_selection(task);
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
  found.off_margin = static_cast<Index>(relax.size());
  const MarginProblem weights = MarginProblem::attention(task, Selection::single(found.selected), relax);
  found.relaxed = solve_verified({&weights, 1}, Norm::frobenius(), alone).front();
  if (found.relaxed.status != MarginStatus::optimal) return {};
  return found;
}

/// The prompt's problem to leading order, r/R = `ratio`; its answer is checked by verify().
MarginSolution leading_order(const AttentionTask& task, const JointPrediction& predicted, double ratio,
                             Threads& alone) {
  MarginSolver solver(alone);
  const Selection selection = Selection::single(predicted.selected);
  JointSvm found = solve_joint_svm(task, selection, beyond_margin(predicted.head, ratio),
                                   [&](const MarginProblem& problem) { return solver.solve(problem, {}); });
  require_verified(MarginProblem::attention(found.task, selection, found.relaxed), found.weights);
  return std::move(found.weights);
}

/// Whether r(f_i − Γ) ≥ RΞ for every input off the label margin, Ξ the margin of the relaxed p-SVM: no right-hand side
/// is then above 0 but those of support vectors.
bool relaxed_suffices(const JointPrediction& predicted, double ratio) {
  const std::vector<double> beyond = beyond_margin(predicted.head, ratio);
  return std::all_of(beyond.begin(), beyond.end(),
                     [&](double one) { return one == 0 || one * predicted.relaxed.objective >= 1; });
}

/// A joint path whose head has a ball `ratio` times as large as the prompt's.
struct JointPath {
  double ratio;
  std::vector<double> to_p, to_v, to_relaxed;
  Index aligned_ones = 0, aligned_relaxed = 0, suffices = 0, suffices_aligned = 0, exact = 0;

  /// Whether p and v have converged to the predicted directions.
  bool add(const JointPrediction& predicted, const MarginSolution& leading, const std::vector<PathPoint>& points) {
    to_p.push_back(distance(points.back().W, leading));
    to_v.push_back(distance(points.back().v, predicted.head));
    to_relaxed.push_back(distance(points.back().W, predicted.relaxed));
    const bool aligned = std::max(to_p.back(), to_v.back()) <= kPathAligned;
    const bool relaxed = std::max(to_relaxed.back(), to_v.back()) <= kPathAligned;
    const bool enough = relaxed_suffices(predicted, ratio);
    exact += largest_stationarity(points) <= kStationary ? 1 : 0;
    aligned_ones += aligned ? 1 : 0;
    aligned_relaxed += relaxed ? 1 : 0;
    suffices += enough ? 1 : 0;
    suffices_aligned += enough && relaxed ? 1 : 0;
    return aligned;
  }
  auto numbers() {
    return std::tie(to_p, to_v, to_relaxed, aligned_ones, aligned_relaxed, suffices, suffices_aligned, exact);
  }
};

ClaimResult test_joint(bool tight, const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  const Recipe recipe{.n = 3, .T = 3, .d = 6, .pattern = QueryPattern::prompt};
  constexpr Index kMostDraws = 24;  // per task wanted
  Tally tally(claim, settings);
  std::vector<JointPath> kinds{{.ratio = 1}};
  if (!tight) kinds.insert(kinds.end(), {{.ratio = 10}, {.ratio = 100}});
  Index draws = 0, met = 0;
  double stationarity = 0;
  tally.continues(kinds, draws, met, stationarity);
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(recipe, {settings.seed, first, count}, threads);
    std::vector<std::optional<JointPrediction>> predicted(tasks.size());
    tally.for_each_alone(count, threads,
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
      std::vector<MarginSolution> leading(chosen.size());
      tally.for_each_alone(std::ssize(chosen), threads, [&](std::size_t k, Threads& alone) {
        PathSettings following = path_settings(Parametrization::p, settings.seed);
        following.joint = true;
        following.head_radius = kind.ratio;
        paths[k] = regularization_path(tasks[chosen[k]], following, alone).points;
        leading[k] = leading_order(tasks[chosen[k]], *predicted[chosen[k]], kind.ratio, alone);
      });
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const JointPrediction& expected = *predicted[chosen[k]];
        const bool held = kind.add(expected, leading[k], paths[k]) && largest_stationarity(paths[k]) <= kStationary;
        stationarity = std::max(stationarity, largest_stationarity(paths[k]));
        if (kind.ratio != 1) continue;
        const double to_p = kind.to_p.back(), to_v = kind.to_v.back();
        const PathPoint& last = paths[k].back();
        tally.add(tasks[chosen[k]], held, std::max(to_p, to_v),
                  fmt::format("1 - correlation {:.3g} of p, {:.3g} of v, stationarity {:.3g}, {} inputs off the label "
                              "margin; 1 - correlation {:.3g} of p with the relaxed p-SVM",
                              to_p, to_v, largest_stationarity(paths[k]), expected.off_margin, kind.to_relaxed.back()),
                  {{"x_p", Array::own(last.W)}, {"x_v", Array::own(last.v)}});
      }
    }
  });
  for (const JointPath& kind : kinds) {
    const auto count = static_cast<Index>(kind.to_p.size());
    const auto label = [&](std::string_view what) {
      return tight ? std::string(what) : fmt::format("head's ball {:g} R: {}", kind.ratio, what);
    };
    tally.figure(label("median 1 - correlation of p"), median(kind.to_p));
    tally.figure(label("median 1 - correlation of v"), median(kind.to_v));
    if (tight || count == 0) continue;
    tally.figure(label("largest 1 - correlation of p"), *std::max_element(kind.to_p.begin(), kind.to_p.end()));
    tally.figure(label("largest 1 - correlation of p with the relaxed p-SVM"),
                 *std::max_element(kind.to_relaxed.begin(), kind.to_relaxed.end()));
    tally.share(label("share within 1e-3"), kind.aligned_ones, count);
    tally.share(label("share within 1e-3 of the relaxed p-SVM"), kind.aligned_relaxed, count);
    tally.share(label("share with r(f_i - Gamma) >= R Xi, which suffices for that"), kind.suffices, count);
    tally.share(label("share of those within 1e-3 of it"), kind.suffices_aligned, kind.suffices);
    tally.share(label("share with first-order conditions to 1e-8"), kind.exact, count);
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

}  // namespace attsvm::internal
