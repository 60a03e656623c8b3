#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "theory/adam_pace.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "train/optimizers.h"

namespace attsvm::internal {
namespace {

constexpr Recipe kOptimizerTasks{.n = 6, .T = 8, .d = 10};

/// Steepest descent in a norm, and the norm in which it is expected to maximise the margin.
struct Descent {
  const char *steps_in, *margin_in;
  double step;
  Index steps = 3000;
};
constexpr std::array kDescents{Descent{"fro", "fro", 0.1}, Descent{"max", "max", 0.02}, Descent{"spec", "spec", 0.05},
                               Descent{"l1", "l1", 0.3}, Descent{"nuc", "nuc", 0.15}};
/// The same on K and Q, each by itself.
constexpr std::array kFactoredDescents{Descent{"fro", "nuc", 0.1}, Descent{"spec", "spec", 0.01, 6000}};

/// Runs, with the problem of the tokens that each selects at its end.
struct SelectedRuns {
  std::vector<TrainedRun> runs;
  std::vector<MarginProblem> problems;
};

SelectedRuns train_selected(std::span<const AttentionTask> tasks, TrainSettings training, Threads& threads) {
  // K and Q cannot start at zero: no step would move them.
  training.init = training.param == Parametrization::KQ ? Init::random : Init::zero;
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

/// Whether every descent's share of the largest margin grows in its own norm, and is larger there than in the others.
ClaimResult judge_descents(std::span<const Descent> descents, Parametrization param, const Claim& claim,
                           const ClaimSettings& settings, Threads& threads) {
  Tally tally(claim, settings);
  std::vector<Mean> own(descents.size()), next(descents.size());
  Index not_separable = 0;
  tally.continues(own, next, not_separable);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kOptimizerTasks, {settings.seed, first, count}, threads);
    std::vector<double> worst(tasks.size(), -kUnmeasured);
    std::vector<std::string> words(tasks.size(), "no run selects tokens that can be separated");
    std::vector<RowMatrix> where(tasks.size());
    for (std::size_t r = 0; r < descents.size(); ++r) {
      const Descent& descent = descents[r];
      const Index early = descent.steps / 10;
      const SelectedRuns all = train_selected(tasks,
                                              {.param = param,
                                               .optimizer = Optimizer::steepest,
                                               .norm = Norm::parse(descent.steps_in),
                                               .step = descent.step,
                                               .steps = descent.steps,
                                               .seed = settings.seed,
                                               .instance = static_cast<std::uint32_t>(first),
                                               .record = {.at = {early, descent.steps}}},
                                              threads);
      std::vector<std::vector<MarginSolution>> svms;
      std::size_t mine_at = 0;
      for (const Descent& other : kDescents) {
        if (std::string_view(other.margin_in) == descent.margin_in) mine_at = svms.size();
        svms.push_back(solve_verified(all.problems, Norm::parse(other.margin_in), threads));
      }
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        if (svms[mine_at][k].status != MarginStatus::optimal) {
          ++not_separable;
          continue;
        }
        const auto share = [&](std::size_t c, const RowMatrix& W) {
          return margin_share(all.problems[k], svms[c][k], W);
        };
        const RowMatrix& W = all.runs[k].W;
        const double mine = share(mine_at, W), before = share(mine_at, all.runs[k].records[0].W);
        double others = 0;
        for (std::size_t c = 0; c < svms.size(); ++c) {
          if (c != mine_at) others = std::max(others, share(c, W));
        }
        own[r].add(mine);
        next[r].add(others);
        const double behind = std::max(others, before) - mine;
        if (behind <= worst[k]) continue;
        worst[k] = behind;
        where[k] = W;
        words[k] =
            fmt::format("steps in {}: share {:.4f} of the margin in {} ({:.4f} at step {}), {:.4f} in another norm",
                        descent.steps_in, mine, descent.margin_in, before, early, others);
      }
    }
    for (std::size_t k = 0; k < tasks.size(); ++k)
      tally.add(tasks[k], worst[k] < 0, worst[k], words[k], {{"x_W", Array::own(where[k])}});
  });
  for (std::size_t r = 0; r < descents.size(); ++r) {
    const std::string name = fmt::format("steps in {}", descents[r].steps_in);
    tally.figure(fmt::format("{}: mean share of the margin in {}", name, descents[r].margin_in), own[r].value());
    tally.figure(fmt::format("{}: mean of the largest share in another norm", name), next[r].value());
  }
  tally.figure("runs left out: selection not separable", static_cast<double>(not_separable));
  return std::move(tally).result();
}

}  // namespace

ClaimResult test_steepest(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return judge_descents(kDescents, Parametrization::W, claim, settings, threads);
}

ClaimResult test_steepest_kq(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return judge_descents(kFactoredDescents, Parametrization::KQ, claim, settings, threads);
}

ClaimResult test_adam_pace(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Index kSteps = 6000;
  constexpr double kStep = 0.01, kClose = 0.1;
  constexpr std::array kForgetting{0.9, 0.95, 0.98};
  Tally tally(claim, settings);
  std::vector<double> misses;
  Index failed = 0, changed = 0;
  tally.continues(misses, failed, changed);
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
  tally.continues(fast_share, slow_share, fast_faded, slow_faded);
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
