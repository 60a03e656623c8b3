// Claims about routers: an entropy penalty, and selections drawn while training.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "attsvm/selector.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

constexpr Recipe kRouterTasks{.n = 5, .T = 5, .d = 6};

/// Runs of one kind from zero, the tokens that each selects at its end, and their SVMs.
struct RoutedRuns {
  std::vector<TrainedRun> runs;
  std::vector<std::vector<Index>> selected;
  std::vector<MarginSolution> svms;
};

RoutedRuns route(std::span<const AttentionTask> tasks, const TrainSettings& training, Threads& threads) {
  RoutedRuns out{.runs = train_many(tasks, training, threads)};
  out.selected = selected_by(tasks, out.runs, threads);
  out.svms = solve_verified(attention_problems(tasks, out.selected), Norm::frobenius(), threads);
  return out;
}

}  // namespace

ClaimResult test_entropy_direction(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr std::array kBetas{0.0, 0.01, 0.1, 1.0};
  constexpr Index kSteps = 10'000, kPlainSteps = 2000;
  constexpr double kAligned = 1e-3;
  Tally tally(claim, settings);
  std::array<std::vector<double>, kBetas.size()> distances, growth;
  std::array<Index, kBetas.size()> global{}, same{};
  Index tasks_done = 0;
  tally.continues(distances, growth, global, same, tasks_done);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto tasks = draw_tasks(kRouterTasks, {settings.seed, first, count}, threads);
    const auto best = optimal_of(tasks);
    std::array<RoutedRuns, kBetas.size()> runs;
    std::array<std::vector<TrainedRun>, kBetas.size()> plain;
    for (std::size_t j = 0; j < kBetas.size(); ++j) {
      runs[j] = route(tasks, {.steps = kSteps, .entropy = kBetas[j]}, threads);
      plain[j] = train_many(tasks, {.optimizer = Optimizer::gd, .step = 1, .steps = kPlainSteps, .entropy = kBetas[j]},
                            threads);
    }
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      ++tasks_done;
      std::size_t worst = 0;
      bool grows = true;
      for (std::size_t j = 0; j < kBetas.size(); ++j) {
        const double off = distance(runs[j].runs[k].W, runs[j].svms[k]);
        distances[j].push_back(off);
        growth[j].push_back(plain[j][k].norm / plain[0][k].norm);
        if (!(off <= distance(runs[worst].runs[k].W, runs[worst].svms[k]))) worst = j;
        grows = grows && (j == 0 || growth[j].back() > 1);
        global[j] += runs[j].selected[k] == best[k] ? 1 : 0;
        same[j] += runs[j].selected[k] == runs[0].selected[k] ? 1 : 0;
      }
      const double off = distance(runs[worst].runs[k].W, runs[worst].svms[k]);
      tally.add(tasks[k], off <= kAligned && grows, off,
                fmt::format("entropy {:g}: 1 - correlation {:.3g} with W^mm of the selected tokens; |W| after {} plain "
                            "steps {} with entropy",
                            kBetas[worst], off, kPlainSteps, grows ? "grows" : "does not always grow"),
                {{"x_W", Array::own(runs[worst].runs[k].W)}});
    }
  });
  for (std::size_t j = 0; j < kBetas.size(); ++j) {
    const auto label = [&](std::string_view what) { return fmt::format("entropy {:g}: {}", kBetas[j], what); };
    tally.figure(label("median 1 - correlation with W^mm of the selected tokens"), median(distances[j]));
    tally.figure(label("median |W| after plain steps, as a multiple of that without entropy"), median(growth[j]));
    tally.share(label("share of runs that end at the optimal tokens"), global[j], tasks_done);
    tally.share(label("share of runs that select as those without entropy"), same[j], tasks_done);
  }
  return std::move(tally).result();
}

ClaimResult test_entropy_locks(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 3, .T = 5, .d = 5};
  constexpr Index kMostDraws = 8, kSteps = 5000;  // draws per task wanted
  constexpr double kBeta = 0.1, kOut = 40;        // logits between selected tokens and their support tokens
  constexpr std::uint32_t kLockStream = 930;
  Tally tally(claim, settings);
  Index stay_with = 0, stay_without = 0, runs_done = 0;
  tally.continues(stay_with, stay_without, runs_done);
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index count) {
    const auto drawn = draw_tasks(kRecipe, {settings.seed, first, count}, threads);
    std::vector<MarginSolution> svms(drawn.size());
    std::vector<std::vector<Index>> kept(drawn.size());
    std::vector<std::uint8_t> usable(drawn.size(), 0);
    tally.for_each_alone(std::ssize(drawn), threads, [&](std::size_t k, Threads& alone) {
      const Random random(settings.seed, static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(k),
                          kLockStream);
      for (Index i = 0; i < drawn[k].queries(); ++i)
        kept[k].push_back(static_cast<Index>(random.below(5, static_cast<std::uint64_t>(i))));
      MarginSolver solver(alone);
      const Selection selection = Selection::single(kept[k]);
      SelectionReport report = assess_selection(drawn[k], selection, {}, solver);
      if (!report.separable || report.locally_optimal || !report.ambiguous.empty()) return;
      require_verified(MarginProblem::attention(drawn[k], selection), report.solution);
      svms[k] = std::move(report.solution);
      usable[k] = 1;
    });
    std::vector<AttentionTask> tasks;
    std::vector<Start> starts;
    std::vector<std::size_t> from;
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      if (usable[k] == 0) continue;
      tasks.push_back(drawn[k]);
      starts.push_back({.W = kOut * svms[k].W});
      from.push_back(k);
    }
    const auto with = train_many(tasks, {.steps = kSteps, .entropy = kBeta}, threads, starts);
    const auto without = train_many(tasks, {.steps = kSteps}, threads, starts);
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const std::vector<Index>& own = kept[from[k]];
      ++runs_done;
      stay_without += attention_map(tasks[k], without[k].W, threads).selected == own ? 1 : 0;
      const bool stays = attention_map(tasks[k], with[k].W, threads).selected == own;
      const double off = distance(with[k].W, svms[from[k]]);
      stay_with += stays ? 1 : 0;
      tally.add(tasks[k], stays && off <= 1e-4, off,
                fmt::format("{} the selection {}; 1 - correlation {:.3g}", stays ? "keeps" : "leaves",
                            fmt::join(own, " "), off),
                {{"x_W0", Array::own(starts[k].W)}});
    }
  });
  tally.share("share of starts that stay", stay_with, runs_done);
  tally.share("share of the same starts that stay without entropy", stay_without, runs_done);
  return std::move(tally).result();
}

ClaimResult test_noise(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Index kRuns = 48, kSteps = 2000;  // runs of each kind per sweep
  struct Kind {
    const char* words;
    TrainSettings training;
  };
  const std::array<Kind, 4> kinds{
      Kind{"softmax", {.steps = kSteps}},
      Kind{"Gumbel draws, temperature 1 to 0.1",
           {.steps = kSteps, .selector = Selector::gumbel, .temperature = {1, 0.1}}},
      Kind{"Dirichlet draws, concentration 10", {.steps = kSteps, .selector = Selector::dirichlet}},
      Kind{"softmax, temperature 1 to 0.1", {.steps = kSteps, .temperature = {1, 0.1}}}};
  Tally tally(claim, settings);
  struct Seen {
    Index global = 0, gained = 0, lost = 0, same = 0;  // beside the softmax
    std::vector<double> distances{};
    auto numbers() { return std::tie(global, gained, lost, same, distances); }
  };
  std::array<Seen, kinds.size()> all;
  Index done = 0;
  tally.continues(all, done);
  tally.for_each_draw([&](Index sweep) {
    const auto tasks = draw_tasks(kRouterTasks, {settings.seed, sweep * kRuns, kRuns}, threads);
    const auto best = optimal_of(tasks);
    std::array<RoutedRuns, kinds.size()> runs;
    std::array<Index, kinds.size()> global{};
    const AttentionTask* example = nullptr;
    for (std::size_t j = 0; j < kinds.size(); ++j) {
      TrainSettings training = kinds[j].training;
      training.seed = settings.seed;
      training.instance = static_cast<std::uint32_t>(sweep * kRuns);
      runs[j] = route(tasks, training, threads);
      Seen& seen = all[j];
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        const bool reaches = runs[j].selected[k] == best[k], before = runs[0].selected[k] == best[k];
        global[j] += reaches ? 1 : 0;
        seen.gained += reaches && !before ? 1 : 0;
        seen.lost += before && !reaches ? 1 : 0;
        seen.same += runs[j].selected[k] == runs[0].selected[k] ? 1 : 0;
        seen.distances.push_back(distance(runs[j].runs[k].W, runs[j].svms[k]));
        if (before && !reaches && example == nullptr) example = &tasks[k];
      }
      seen.global += global[j];
    }
    done += kRuns;
    const Index gain = std::min(global[1], global[2]) - global[0];
    tally.add(example != nullptr ? *example : tasks.front(), gain > 0, static_cast<double>(-gain) / kRuns,
              fmt::format("of {} runs end at the optimal tokens: softmax {}, Gumbel {}, Dirichlet {}", kRuns, global[0],
                          global[1], global[2]));
  });
  for (std::size_t j = 0; j < kinds.size(); ++j) {
    const auto label = [&](std::string_view what) { return fmt::format("{}: {}", kinds[j].words, what); };
    tally.share(label("share of runs that end at the optimal tokens"), all[j].global, done);
    if (j > 0) {
      tally.share(label("share that does and does not by the softmax"), all[j].gained, done);
      tally.share(label("share that does not and does by the softmax"), all[j].lost, done);
      tally.share(label("share of runs that select as the softmax"), all[j].same, done);
    }
    tally.figure(label("median 1 - correlation with W^mm of the selected tokens"), median(all[j].distances));
  }
  return std::move(tally).result();
}

}  // namespace attsvm::internal
