// Claims about local optimality: its directions attract runs, others do not, and it becomes rare as d grows.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "attsvm/theory.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

constexpr Index kLocalSteps = 20000;
constexpr double kLocalAligned = 1e-4;  // 1 − correlation that counts as converged, as for runs from zero
constexpr double kAhead = 40;           // logits by which selected tokens begin ahead of support tokens
constexpr std::uint32_t kConeStream = 0x5c0e0200, kChoiceStream = 0x5c0e0201;

struct Candidate {
  AttentionTask task;
  std::vector<Index> selected;
  MarginSolution svm;
  RowMatrix W0;
};

/// A point on the ray of W^mm, `ahead` times as long, plus a random perturbation that changes no row by more than a
/// quarter of the margin, nor by more than a quarter of `room`, the slack of the nearest token off the margin.
RowMatrix in_cone(const MarginProblem& problem, const RowMatrix& svm, double ahead, double room, const Random& random) {
  const RowMatrix move = random_matrix(random, svm.rows(), svm.cols(), 1);
  const double most = problem.values(move).cwiseAbs().maxCoeff();
  return ahead * (svm + room / (4 * most) * move);
}

/// Draws until a task has a selection of the kind wanted; picks one at random.
using Chooser = std::function<bool(Candidate& candidate, const Random& random, Threads& alone)>;

std::vector<Candidate> draw_candidates(Tally& tally, const Recipe& recipe, Index first, Index count,
                                       const Chooser& choose, Threads& threads) {
  const std::uint64_t seed = tally.seed();
  std::vector<std::optional<Candidate>> found(static_cast<std::size_t>(count));
  tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
    const auto instance = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(k);
    Candidate candidate{.task = draw_task(recipe, seed, instance)};
    if (choose(candidate, Random(seed, instance, kChoiceStream), alone)) found[k] = std::move(candidate);
  });
  std::vector<Candidate> kept;
  for (auto& one : found) {
    if (one) kept.push_back(std::move(*one));
  }
  return kept;
}

std::vector<TrainedRun> run_all(std::span<const Candidate> candidates, Threads& threads) {
  std::vector<AttentionTask> tasks;
  std::vector<Start> starts;
  for (const Candidate& one : candidates) {
    tasks.push_back(one.task);
    starts.push_back({.W = one.W0});
  }
  return train_many(tasks, {.steps = kLocalSteps}, threads, starts);
}

double degrees(const RowMatrix& A, const RowMatrix& B) {
  constexpr double kHalfTurn = 180;
  return std::acos(std::min(1.0, correlation(A, B))) * kHalfTurn / std::acos(-1.0);
}

}  // namespace

ClaimResult test_local(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 3, .T = 5, .d = 5};
  constexpr Index kMostDraws = 8;  // per task wanted
  Tally tally(claim, settings);
  Mean angle;
  Index draws = 0, with_local = 0;
  std::vector<double> distances;
  tally.continues(angle, draws, with_local, distances);
  const Chooser choose = [&](Candidate& candidate, const Random& random, Threads& alone) {
    const auto optima = enumerate_local_optima(candidate.task, {.limit = 1000}, alone).locally_optimal;
    const auto best = optimal_of({&candidate.task, 1}).front();
    std::vector<std::vector<Index>> local;
    for (const Selection& one : optima) {
      if (one.firsts() != best) local.push_back(one.firsts());
    }
    if (local.empty()) return false;
    candidate.selected = local[random.below(local.size(), 0)];
    const auto problems = attention_problems({&candidate.task, 1}, {&candidate.selected, 1});
    candidate.svm = solve_verified(problems, Norm::frobenius(), alone).front();
    double room = 1;  // the margin, or the least slack of a token that is not a support token
    for (const double slack : candidate.svm.slack) {
      if (slack > kSupportTolerance) room = std::min(room, slack);
    }
    const Random cone(settings.seed, static_cast<std::uint32_t>(random.bits(1)), kConeStream);
    candidate.W0 = in_cone(problems.front(), candidate.svm.W, kAhead / room, room, cone);
    return true;
  };
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto candidates = draw_candidates(tally, kRecipe, first, count, choose, threads);
    draws += count;
    with_local += static_cast<Index>(candidates.size());
    const auto runs = run_all(candidates, threads);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      const Candidate& one = candidates[k];
      const double now = distance(runs[k].W, one.svm);
      const bool stays = attention_map(one.task, runs[k].W, threads).selected == one.selected;
      angle.add(degrees(one.W0, one.svm.W));
      distances.push_back(now);
      tally.add(one.task, stays && now <= kLocalAligned, now,
                fmt::format("{} the selection {}; 1 - correlation {:.3g}", stays ? "keeps" : "leaves",
                            fmt::join(one.selected, " "), now),
                {{"x_W0", Array::own(one.W0)}});
    }
  });
  tally.share("share of draws with a locally optimal selection that is not optimal", with_local, draws);
  tally.figure("mean angle between start and W^mm, degrees", angle.value());
  tally.figure("median 1 - correlation at the end", median(distances));
  return std::move(tally).result();
}

ClaimResult test_necessity(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 3, .T = 5, .d = 5};
  constexpr Index kMostDraws = 8;  // per task wanted
  Tally tally(claim, settings);
  Index to_optimal = 0, runs_done = 0;
  tally.continues(to_optimal, runs_done);
  const Chooser choose = [&](Candidate& candidate, const Random& random, Threads& alone) {
    for (Index i = 0; i < candidate.task.queries(); ++i) {
      candidate.selected.push_back(static_cast<Index>(
          random.below(static_cast<std::uint64_t>(candidate.task.visible(i)), static_cast<std::uint64_t>(i))));
    }
    MarginSolver solver(alone);
    const Selection selection = Selection::single(candidate.selected);
    SelectionReport report = assess_selection(candidate.task, selection, {}, solver);
    if (!report.separable || report.locally_optimal || !report.ambiguous.empty()) return false;
    candidate.svm = std::move(report.solution);
    const MarginProblem problem = MarginProblem::attention(candidate.task, selection);
    require_verified(problem, candidate.svm);
    const Random cone(settings.seed, static_cast<std::uint32_t>(random.bits(10)), kConeStream);
    candidate.W0 = in_cone(problem, candidate.svm.W, kAhead, 1, cone);
    return true;
  };
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto candidates = draw_candidates(tally, kRecipe, first, count, choose, threads);
    const auto runs = run_all(candidates, threads);
    for (std::size_t k = 0; k < candidates.size(); ++k) {
      const Candidate& one = candidates[k];
      const auto selected = attention_map(one.task, runs[k].W, threads).selected;
      const double correlated = correlation(runs[k].W, one.svm.W);
      ++runs_done;
      to_optimal += selected == optimal_of({&one.task, 1}).front() ? 1 : 0;
      tally.add(one.task, selected != one.selected, correlated,
                fmt::format("still selects {} after {} steps; correlation {:.6g}", fmt::join(one.selected, " "),
                            kLocalSteps, correlated),
                {{"x_W0", Array::own(one.W0)}});
    }
  });
  tally.share("share of runs that end at the optimal tokens", to_optimal, runs_done);
  return std::move(tally).result();
}

ClaimResult test_over_parametrization(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr std::array<Index, 5> kSizes{2, 4, 8, 16, 32};
  constexpr Index kRuns = 24, kRunSteps = 4000;  // runs of each d in a sweep
  struct Seen {
    std::array<Index, 3> verdicts{};
    Index runs = 0, all_support = 0;
    double support = 0;
    double share(Verdict verdict) const {
      return static_cast<double>(verdicts[static_cast<std::size_t>(verdict)]) / static_cast<double>(runs);
    }
    void add(const Seen& other) {
      for (std::size_t v = 0; v < verdicts.size(); ++v) verdicts[v] += other.verdicts[v];
      runs += other.runs;
      all_support += other.all_support;
      support += other.support;
    }
    auto numbers() { return std::tie(verdicts, runs, all_support, support); }
  };
  Tally tally(claim, settings);
  const auto sweep_at = [&](Index d, Index sweep, std::optional<AttentionTask>& example) {
    const auto tasks = draw_tasks({.n = 5, .T = 5, .d = d}, {settings.seed, sweep * kRuns, kRuns}, threads);
    const auto runs = train_many(tasks, {.steps = kRunSteps}, threads);
    std::vector<SelectionReport> found(tasks.size());
    tally.for_each_alone(kRuns, threads, [&](std::size_t k, Threads& alone) {
      MarginSolver solver(alone);
      const Selection selection = Selection::single(attention_map(tasks[k], runs[k].W, alone).selected);
      found[k] = assess_selection(tasks[k], selection, {}, solver);
      require_verified(MarginProblem::attention(tasks[k], selection), found[k].solution);
    });
    Seen seen;
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      const SelectionReport& report = found[k];
      const Verdict verdict = report.optimal           ? Verdict::global
                              : report.locally_optimal ? Verdict::local
                                                       : Verdict::neither;
      if (verdict != Verdict::global && !example) example = tasks[k];
      ++seen.verdicts[static_cast<std::size_t>(verdict)];
      ++seen.runs;
      const auto rows = static_cast<double>(report.solution.slack.size());
      const auto support = static_cast<double>(report.support.size());
      seen.support += support / rows;
      seen.all_support += support == rows ? 1 : 0;
    }
    return seen;
  };
  std::array<Seen, kSizes.size()> all{};
  tally.continues(all);
  tally.for_each_draw([&](Index sweep) {
    std::array<Seen, kSizes.size()> seen;
    std::optional<AttentionTask> example;
    double smallest_gain = kUnmeasured;
    for (std::size_t s = 0; s < kSizes.size(); ++s) {
      example.reset();
      seen[s] = sweep_at(kSizes[s], sweep, example);
      all[s].add(seen[s]);
      if (s > 0) smallest_gain = std::min(smallest_gain, (seen[s].support - seen[s - 1].support) / kRuns);
    }
    const double gain = seen.back().share(Verdict::global) - seen.front().share(Verdict::global);
    tally.add(example.value_or(draw_task({.n = 5, .T = 5, .d = kSizes.back()}, settings.seed, sweep * kRuns)),
              gain > 0 && smallest_gain > 0, -std::min(gain, smallest_gain),
              fmt::format("from d = {} to {} the share of global runs changes by {:.3g}; the share of support tokens "
                          "changes by {:.3g} at the least of the doublings",
                          kSizes.front(), kSizes.back(), gain, smallest_gain));
  });
  for (std::size_t s = 0; s < kSizes.size() && all[s].runs > 0; ++s) {
    const auto label = [&](std::string_view what) { return fmt::format("d = {}: {}", kSizes[s], what); };
    for (const Verdict verdict : {Verdict::global, Verdict::local, Verdict::neither}) {
      tally.figure(label(fmt::format("share {}", name_of(verdict))), all[s].share(verdict));
    }
    tally.figure(label("share of support tokens"), all[s].support / static_cast<double>(all[s].runs));
    tally.share(label("share of tasks of support tokens alone"), all[s].all_support, all[s].runs);
  }
  return std::move(tally).result();
}

}  // namespace attsvm::internal
