// Claims about runs that come to rest: weight decay and dropout.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/settling.h"

namespace attsvm::internal {
namespace {

const Recipe kSettlingTasks{.n = 3, .T = 4, .d = 5};

}  // namespace

ClaimResult test_decay(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr double kOnPath = 1e-8;  // 1 − correlation with the path's minimiser
  constexpr Index kMostDraws = 4;   // per task wanted
  constexpr double kNormalizedStep = 0.1, kNormalizedDecay = 0.1;
  Tally tally(claim, settings);
  Index draws = 0, separable = 0, closer = 0;
  double normalized_off = 0, normalized_to_path = 0;
  std::array<std::vector<double>, kDecays.size()> norms, to_svm;
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(kSettlingTasks, {settings.seed, first, std::min(count, tally.wanted())}, threads);
    const auto svm = solve_verified(attention_problems(tasks, optimal_of(tasks)), Norm::frobenius(), threads);
    std::vector<std::array<DecayedRun, kDecays.size()>> runs(tasks.size());
    std::vector<DecayedRun> normalized(tasks.size());
    for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
      if (svm[k].status != MarginStatus::optimal) return;
      for (std::size_t j = 0; j < kDecays.size(); ++j)
        runs[k][j] = run_with_decay(tasks[k], Optimizer::gd, kDecayStep, kDecays[j], settings.seed, alone);
      normalized[k] = run_with_decay(tasks[k], Optimizer::ngd, kNormalizedStep, kNormalizedDecay, settings.seed, alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      ++draws;
      if (svm[k].status != MarginStatus::optimal) continue;
      ++separable;
      std::size_t worst = 0;
      for (std::size_t j = 0; j < kDecays.size(); ++j) {
        if (!(runs[k][j].to_path <= runs[k][worst].to_path)) worst = j;
        norms[j].push_back(runs[k][j].norm);
        to_svm[j].push_back(distance(runs[k][j].W, svm[k]));
      }
      normalized_off = std::max(normalized_off, std::abs(kNormalizedDecay * normalized[k].norm - 1));
      normalized_to_path = std::max(normalized_to_path, normalized[k].to_path);
      closer += to_svm.back().back() < to_svm.front().back() ? 1 : 0;
      const DecayedRun& run = runs[k][worst];
      tally.add(tasks[k], run.to_path <= kOnPath, run.to_path,
                fmt::format("1 - correlation {:.3g} with the path's minimiser at radius {:.4g}, decay {:g}",
                            run.to_path, run.norm, kDecays[worst]),
                {{"x_W", Array::own(run.W)}});
    }
  });
  for (std::size_t j = 0; j < kDecays.size(); ++j) {
    tally.figure(fmt::format("decay {:g}: median |W|", kDecays[j]), median(norms[j]));
    tally.figure(fmt::format("decay {:g}: median 1 - correlation with W^mm", kDecays[j]), median(to_svm[j]));
  }
  tally.figure("normalized steps, decay 0.1: largest |decay |W| - 1|", normalized_off);
  tally.figure("normalized steps, decay 0.1: largest 1 - correlation with the path's minimiser", normalized_to_path);
  tally.share("share of runs closer to W^mm at the smallest decay than at the largest", closer, separable);
  tally.share("share of draws that are separable", separable, draws);
  return std::move(tally).result();
}

ClaimResult test_dropout(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr double kLeast = 0.02;      // share of the expected loss that equal attention has above the least value
  constexpr double kSaturated = 0.99;  // attention
  Tally tally(claim, settings);
  std::array<std::vector<double>, kDropouts.size()> largest, off;
  std::array<Index, kDropouts.size()> open{}, stays_open{}, queries{};
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kSettlingTasks, draws, threads);
    std::vector<std::array<DropoutRun, kDropouts.size()>> runs(tasks.size());
    for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
      for (std::size_t j = 0; j < kDropouts.size(); ++j)
        runs[k][j] = run_with_dropout(tasks[k], kDropouts[j], settings.seed, draws.instance(k), alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      std::size_t worst = 0;
      for (std::size_t j = 0; j < kDropouts.size(); ++j) {
        const DropoutRun& run = runs[k][j];
        if (!(run.excess <= runs[k][worst].excess)) worst = j;
        for (std::size_t i = 0; i < run.limits.size(); ++i) {
          largest[j].push_back(run.largest[i]);
          off[j].push_back(std::abs(run.largest[i] - run.limits[i].attention.maxCoeff()));
          ++queries[j];
          if (run.limits[i].attention.maxCoeff() >= kSaturated) continue;
          ++open[j];
          stays_open[j] += run.largest[i] < kSaturated ? 1 : 0;
        }
      }
      const DropoutRun& run = runs[k][worst];
      tally.add(
          tasks[k], run.excess <= kLeast, run.excess,
          fmt::format("dropout {:g}: {:.3g} of the excess of equal attention is left", kDropouts[worst], run.excess),
          {{"x_W", Array::own(run.W)}});
    }
  });
  for (std::size_t j = 0; j < kDropouts.size(); ++j) {
    const auto label = [&](std::string_view what) { return fmt::format("dropout {:g}: {}", kDropouts[j], what); };
    if (queries[j] == 0) continue;
    tally.figure(label("smallest attention of a selected token"),
                 *std::min_element(largest[j].begin(), largest[j].end()));
    tally.figure(label("median distance of a selected token's attention from the predicted one"), median(off[j]));
    tally.share(label("share of queries predicted below attention 0.99"), open[j], queries[j]);
    tally.share(label("share of those that end below it"), stays_open[j], open[j]);
  }
  return std::move(tally).result();
}

}  // namespace attsvm::internal
