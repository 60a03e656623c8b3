// Claims about runs that come to rest, by weight decay, dropout or label smoothing, and about minibatches.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/settling.h"

namespace attsvm::internal {
namespace {

const Recipe kSettlingTasks{.n = 3, .T = 4, .d = 5};

/// 1 − correlation of W with the SVM of the tokens that it selects, and with where normalized steps on single queries
/// should lead it.
struct Turned {
  double to_svm = kUnmeasured, to_limit = kUnmeasured;
};

Turned turned(const AttentionTask& task, const RowMatrix& W, bool limit, Threads& alone) {
  const MarginProblem problem =
      MarginProblem::attention(task, Selection::single(attention_map(task, W, alone).selected));
  const MarginSolution svm = solve(problem, {}, alone);
  require_verified(problem, svm);
  if (svm.status != MarginStatus::optimal) return {};
  const RowMatrix predicted = limit ? single_query_limit(problem, alone) : RowMatrix();
  return {distance(W, svm), predicted.isZero(0) ? kUnmeasured : 1 - correlation(W, predicted)};
}

}  // namespace

ClaimResult test_decay(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr double kOnPath = 1e-8;  // 1 − correlation with the path's minimiser
  constexpr Index kMostDraws = 4;   // per task wanted
  constexpr double kNormalizedStep = 0.1, kNormalizedDecay = 0.1;
  Tally tally(claim, settings);
  Index draws = 0, separable = 0, closer = 0;
  double normalized_off = 0, normalized_to_path = 0;
  std::array<std::vector<double>, kDecays.size()> norms, to_svm;
  tally.continues(draws, separable, closer, normalized_off, normalized_to_path, norms, to_svm);
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto tasks = draw_tasks(kSettlingTasks, {settings.seed, first, std::min(count, tally.wanted())}, threads);
    const auto svm = solve_verified(attention_problems(tasks, optimal_of(tasks)), Norm::frobenius(), threads);
    std::vector<std::array<DecayedRun, kDecays.size()>> runs(tasks.size());
    std::vector<DecayedRun> normalized(tasks.size());
    tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
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
  tally.continues(largest, off, open, stays_open, queries);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kSettlingTasks, draws, threads);
    std::vector<std::array<DropoutRun, kDropouts.size()>> runs(tasks.size());
    tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
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

ClaimResult test_batches(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr std::array kBatchDecays{1e-1, 1e-2};
  constexpr double kOnPath = 1e-3, kAsFast = 1.1;
  constexpr Index kSteps = 20'000;
  Tally tally(claim, settings);
  std::array<std::vector<double>, kBatchDecays.size()> to_path;
  std::vector<double> ratios;
  tally.continues(to_path, ratios);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kSettlingTasks, draws, threads);
    std::vector<std::array<DecayedRun, kBatchDecays.size()>> runs(tasks.size());
    std::vector<std::array<double, 2>> to_svm(tasks.size());
    tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      for (std::size_t j = 0; j < kBatchDecays.size(); ++j)
        runs[k][j] = run_batches_with_decay(tasks[k], kBatchDecays[j], settings.seed, draws.instance(k), alone);
      TrainSettings training{.optimizer = Optimizer::gd,
                             .step = kBatchStep,
                             .steps = kSteps,
                             .init = Init::zero,
                             .seed = settings.seed,
                             .instance = draws.instance(k)};
      for (std::size_t j = 0; j < 2; ++j) {
        training.batch = j == 0 ? 0 : 1;
        to_svm[k][j] = turned(tasks[k], train(tasks[k], training, alone).W, false, alone).to_svm;
      }
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      std::size_t worst = 0;
      for (std::size_t j = 0; j < kBatchDecays.size(); ++j) {
        to_path[j].push_back(runs[k][j].to_path);
        if (!(runs[k][j].to_path <= runs[k][worst].to_path)) worst = j;
      }
      const auto [all, one] = to_svm[k];
      ratios.push_back(one / all);
      tally.add(tasks[k], runs[k][worst].to_path <= kOnPath && std::isfinite(all) && one <= kAsFast * all,
                runs[k][worst].to_path,
                fmt::format("1 - correlation {:.3g} with the path's minimiser at radius {:.4g}, decay {:g}; without "
                            "decay {:.3g} with the SVM, {:.3g} by steps on all queries",
                            runs[k][worst].to_path, runs[k][worst].norm, kBatchDecays[worst], one, all),
                {{"x_W", Array::own(runs[k][worst].W)}});
    }
  });
  for (std::size_t j = 0; j < kBatchDecays.size(); ++j)
    tally.figure(fmt::format("decay {:g}: median 1 - correlation with the path's minimiser", kBatchDecays[j]),
                 median(to_path[j]));
  tally.figure("without decay: median 1 - correlation with the SVM, times that by steps on all queries",
               median(ratios));
  return std::move(tally).result();
}

ClaimResult test_batches_normalized(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr double kClose = 1e-3;
  Tally tally(claim, settings);
  std::vector<double> to_limit, to_svm;
  tally.continues(to_limit, to_svm);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kSettlingTasks, draws, threads);
    std::vector<RowMatrix> W(tasks.size());
    std::vector<Turned> found(tasks.size());
    tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      const TrainSettings training{
          .steps = 20'000, .batch = 1, .init = Init::zero, .seed = settings.seed, .instance = draws.instance(k)};
      W[k] = train(tasks[k], training, alone).W;
      found[k] = turned(tasks[k], W[k], true, alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const Turned& run = found[k];
      to_limit.push_back(run.to_limit);
      to_svm.push_back(run.to_svm);
      tally.add(
          tasks[k], run.to_limit <= kClose && run.to_limit < run.to_svm, run.to_limit,
          fmt::format("1 - correlation {:.3g} with the prediction, {:.3g} with the SVM", run.to_limit, run.to_svm),
          {{"x_W", Array::own(W[k])}});
    }
  });
  tally.figure("median 1 - correlation with the prediction", median(to_limit));
  tally.figure("median 1 - correlation with the SVM", median(to_svm));
  return std::move(tally).result();
}

ClaimResult test_smoothing(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  Tally tally(claim, settings);
  std::array<Index, kSmoothings.size()> aimed{};
  Index queries = 0, off = 0, stuck = 0;
  tally.continues(aimed, queries, off, stuck);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kSettlingTasks, {settings.seed, first, count}, threads);
    std::vector<std::array<SmoothedRun, kSmoothings.size()>> runs(tasks.size());
    tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      for (std::size_t j = 0; j < kSmoothings.size(); ++j)
        runs[k][j] = run_with_smoothing(tasks[k], kSmoothings[j], alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      std::size_t worst = 0;
      queries += tasks[k].queries();
      for (std::size_t j = 0; j < kSmoothings.size(); ++j) {
        const SmoothedRun& run = runs[k][j];
        if (run.off > runs[k][worst].off) worst = j;
        for (std::size_t i = 0; i < run.limit.size(); ++i) {
          aimed[j] += run.limit[i] == smoothed_aim(kSmoothings[j]) ? 1 : 0;
          off += std::abs(run.output[i] - run.limit[i]) > kSmoothedClose ? 1 : 0;
          stuck += run.stuck[i] ? 1 : 0;
        }
      }
      const SmoothedRun& run = runs[k][worst];
      tally.add(tasks[k], run.off <= kSmoothedClose, run.off,
                fmt::format("smoothing {:g}: an output is off by {:.3g}", kSmoothings[worst], run.off),
                {{"x_W", Array::own(run.W)}});
    }
  });
  for (std::size_t j = 0; j < kSmoothings.size(); ++j)
    tally.share(fmt::format("smoothing {:g}: share of queries that attention can bring to the aim", kSmoothings[j]),
                aimed[j], queries);
  tally.share("share of outputs that are off", off, queries * std::ssize(kSmoothings));
  tally.share("share of these whose query has saturated, at another token", stuck, off);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
