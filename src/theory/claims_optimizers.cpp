#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "theory/adam_pace.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "train/optimizers.h"

namespace attsvm::internal {
namespace {

constexpr Recipe kOptimizerTasks{.n = 6, .T = 8, .d = 10};

/// A norm and the step of its steepest descent.
struct Descent {
  const char* norm;
  double step;
};
constexpr std::array kDescents{Descent{"fro", 0.1}, Descent{"max", 0.02}, Descent{"spec", 0.05}, Descent{"l1", 0.3},
                               Descent{"nuc", 0.15}};

/// Runs, with the problem of the tokens that each selects at its end.
struct SelectedRuns {
  std::vector<TrainedRun> runs;
  std::vector<MarginProblem> problems;
};

SelectedRuns train_selected(std::span<const AttentionTask> tasks, TrainSettings training, Threads& threads) {
  training.init = Init::zero;
  SelectedRuns all{.runs = train_many(tasks, training, threads)};
  all.problems = attention_problems(tasks, selected_by(tasks, all.runs, threads));
  return all;
}

/// One run of Adam beside its prediction.
struct AdamRun {
  double growth = kUnmeasured, predicted = kUnmeasured, faded = 0, share = kUnmeasured;
  bool separable = false, changed = false;  ///< changed: other tokens were selected at half of the steps
};

/// Adam without ε, growth over the second half of the steps.
std::vector<AdamRun> run_adam(std::span<const AttentionTask> tasks, double step, double b2, Index steps,
                              Threads& threads) {
  constexpr double kFirst = 0.9;
  const TrainSettings training{.optimizer = Optimizer::adam,
                               .betas = {{kFirst, b2}},
                               .step = step,
                               .steps = steps,
                               .epsilon = 0,
                               .record = {.at = {steps / 2, steps}}};
  const SelectedRuns all = train_selected(tasks, training, threads);
  const std::vector<MarginSolution> svms = solve_verified(all.problems, Norm::largest(), threads);
  std::vector<AdamRun> out(tasks.size());
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    if (svms[k].status != MarginStatus::optimal || all.runs[k].records.size() != 2) continue;
    const auto gap = [&](std::size_t r) { return all.problems[k].values(all.runs[k].records[r].W).minCoeff(); };
    const AdamPace pace = adam_pace(step, kFirst, b2, 1 / svms[k].objective);
    out[k] = {.growth = (gap(1) - gap(0)) / static_cast<double>(steps - steps / 2),
              .predicted = pace.growth,
              .faded = pace.fading * static_cast<double>(steps),
              .share = margin_share(all.problems[k], svms[k], all.runs[k].W),
              .separable = true,
              .changed = gap(0) < 0};
  }
  return out;
}

}  // namespace

ClaimResult test_steepest(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Index kSteps = 3000, kEarly = 300;
  constexpr std::size_t kCount = kDescents.size();
  Tally tally(claim, settings);
  std::array<Mean, kCount> own, next;
  Index not_separable = 0;
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kOptimizerTasks, {settings.seed, first, count}, threads);
    std::vector<double> worst(tasks.size(), -kUnmeasured);
    std::vector<std::string> words(tasks.size(), "no run selects tokens that can be separated");
    std::vector<RowMatrix> where(tasks.size());
    for (std::size_t r = 0; r < kCount; ++r) {
      const SelectedRuns all = train_selected(tasks,
                                              {.optimizer = Optimizer::steepest,
                                               .norm = Norm::parse(kDescents[r].norm),
                                               .step = kDescents[r].step,
                                               .steps = kSteps,
                                               .record = {.at = {kEarly, kSteps}}},
                                              threads);
      std::array<std::vector<MarginSolution>, kCount> svms;
      for (std::size_t c = 0; c < kCount; ++c)
        svms[c] = solve_verified(all.problems, Norm::parse(kDescents[c].norm), threads);
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        if (svms[r][k].status != MarginStatus::optimal) {
          ++not_separable;
          continue;
        }
        const RowMatrix& W = all.runs[k].W;
        const double mine = margin_share(all.problems[k], svms[r][k], W),
                     early = margin_share(all.problems[k], svms[r][k], all.runs[k].records[0].W);
        double others = 0;
        for (std::size_t c = 0; c < kCount; ++c) {
          if (c != r) others = std::max(others, margin_share(all.problems[k], svms[c][k], W));
        }
        own[r].add(mine);
        next[r].add(others);
        const double behind = std::max(others, early) - mine;
        if (behind <= worst[k]) continue;
        worst[k] = behind;
        where[k] = W;
        words[k] = fmt::format("descent in {}: share {:.4f} in its own norm ({:.4f} at step {}), {:.4f} in another",
                               kDescents[r].norm, mine, early, kEarly, others);
      }
    }
    for (std::size_t k = 0; k < tasks.size(); ++k)
      tally.add(tasks[k], worst[k] < 0, worst[k], words[k], {{"x_W", Array::own(where[k])}});
  });
  for (std::size_t r = 0; r < kCount; ++r) {
    tally.figure(fmt::format("{}: mean share in its own norm", kDescents[r].norm), own[r].value());
    tally.figure(fmt::format("{}: mean of the largest share in another", kDescents[r].norm), next[r].value());
  }
  tally.figure("runs left out: selection not separable", static_cast<double>(not_separable));
  return std::move(tally).result();
}

ClaimResult test_adam_pace(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Index kSteps = 6000;
  constexpr double kStep = 0.01, kClose = 0.1;
  constexpr std::array kForgetting{0.9, 0.95, 0.98};
  Tally tally(claim, settings);
  std::vector<double> misses;
  Index failed = 0, changed = 0;
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kOptimizerTasks, {settings.seed, first, count}, threads);
    std::vector<double> worst(tasks.size(), 0);
    std::vector<std::string> words(tasks.size());
    std::vector<std::uint8_t> late(tasks.size(), 0);
    for (const double b2 : kForgetting) {
      const std::vector<AdamRun> runs = run_adam(tasks, kStep, b2, kSteps, threads);
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        const double miss = runs[k].separable ? std::abs(runs[k].growth / runs[k].predicted - 1) : kUnmeasured;
        misses.push_back(miss);
        if (miss < worst[k]) continue;
        worst[k] = miss;
        late[k] = runs[k].changed ? 1 : 0;
        words[k] = fmt::format("b2 = {}: the gap grows by {:.5f} a step, predicted {:.5f}{}", b2, runs[k].growth,
                               runs[k].predicted, runs[k].changed ? "; the tokens changed on the way" : "");
      }
    }
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      tally.add(tasks[k], worst[k] <= kClose, worst[k], words[k]);
      failed += worst[k] <= kClose ? 0 : 1;
      changed += worst[k] <= kClose ? 0 : late[k];
    }
  });
  tally.figure("median relative error of the predicted growth", median(misses));
  tally.share("share of failed tasks whose tokens changed in the second half", changed, failed);
  return std::move(tally).result();
}

ClaimResult test_adam_turn(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Index kSteps = 6000;
  constexpr double kStep = 0.03, kFast = 0.9, kSlow = 0.995, kThere = 0.85, kNotThere = 0.7;
  Tally tally(claim, settings);
  Mean fast_share, slow_share, fast_faded, slow_faded;
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kOptimizerTasks, {settings.seed, first, count}, threads);
    const std::vector<AdamRun> fast = run_adam(tasks, kStep, kFast, kSteps, threads),
                               slow = run_adam(tasks, kStep, kSlow, kSteps, threads);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      const bool known = fast[k].separable && slow[k].separable;
      const bool foreseen = known && fast[k].faded >= 20 && slow[k].faded <= 0.1;
      if (known) {
        fast_share.add(fast[k].share);
        slow_share.add(slow[k].share);
        fast_faded.add(fast[k].faded);
        slow_faded.add(slow[k].faded);
      }
      tally.add(tasks[k], foreseen && fast[k].share >= kThere && slow[k].share <= kNotThere,
                known ? std::max(kThere - fast[k].share, slow[k].share - kNotThere) : kUnmeasured,
                fmt::format("share {:.3f} with b2 = {} (faded {:.3g}), {:.3f} with b2 = {} (faded {:.3g})",
                            fast[k].share, kFast, fast[k].faded, slow[k].share, kSlow, slow[k].faded));
    }
  });
  tally.figure("mean share with b2 = 0.9", fast_share.value());
  tally.figure("steps x (1 - b2 e^2r), mean", fast_faded.value());
  tally.figure("mean share with b2 = 0.995", slow_share.value());
  tally.figure("steps x (1 - b2 e^2r), mean", slow_faded.value());
  return std::move(tally).result();
}

}  // namespace attsvm::internal
