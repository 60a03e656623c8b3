// Claims about stacks of layers: a hierarchy of SVMs.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attsvm/hierarchy.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"

namespace attsvm::internal {
namespace {

constexpr Recipe kLayerTasks{.n = 6, .T = 6, .d = 8, .pattern = QueryPattern::prompt};
constexpr Index kLayerSteps = 10'000;

struct StackShape {
  Index layers, heads;
  bool causal;
};
constexpr std::array kShapes{StackShape{2, 1, true}, StackShape{2, 2, true}, StackShape{3, 1, true},
                             StackShape{2, 1, false}};

/// In what a claim differs from layers-live.
struct LayersVariant {
  Askers askers = Askers::live;
  bool train_values = false;
  Index mlp = 0;
};

/// A trained stack: its heads beside their SVMs, and the worst of them.
struct LayersRun {
  std::vector<HeadMargin> heads;
  double worst = 0;        ///< largest 1 − correlation
  bool beats_null = true;  ///< every head is closer to its SVM than every matrix of its null
  RowMatrix W;             ///< of all heads, one below the other

  explicit LayersRun(std::vector<HeadMargin> judged = {}) : heads(std::move(judged)) {
    for (const HeadMargin& head : heads) {
      if (head.solution.W.isZero(0)) continue;  // no rows
      const double off = 1 - head.last_correlation.value;
      worst = std::isnan(off) ? kUnmeasured : std::max(worst, off);
      beats_null = beats_null && head.last_correlation.share() == 1;
    }
  }
};

LayersRun train_and_judge_stack(const AttentionTask& task, const StackSettings& settings, Askers askers,
                                Threads& alone) {
  constexpr Index kNullDraws = 10;
  const StackRun run = train_stack(task, settings, alone);
  LayersRun out(hierarchy(task, run.records, {.askers = askers, .null_draws = kNullDraws}, alone));
  const std::vector<AttentionTask> read = layer_tasks(task, run.last.stack, askers, alone);
  for (const HeadMargin& head : out.heads) {
    require_verified(
        MarginProblem::attention(read[static_cast<std::size_t>(head.layer)], Selection::single(head.selected)),
        head.solution);
  }
  const Index d = task.value_size();
  out.W.resize(d * std::ssize(run.last.stack.W), d);
  for (std::size_t k = 0; k < run.last.stack.W.size(); ++k)
    out.W.middleRows(static_cast<Index>(k) * d, d) = run.last.stack.W[k];
  return out;
}

ClaimResult test_layers(const LayersVariant& variant, const Claim& claim, const ClaimSettings& settings,
                        Threads& threads) {
  constexpr double kClose = 0.01;
  Tally tally(claim, settings);
  std::array<std::vector<double>, kShapes.size()> off;  // of every head
  std::array<Index, kShapes.size()> held{}, tasks_of{};
  std::vector<double> rho, null_rho, null_correlation, attention;
  tally.continues(off, held, tasks_of, rho, null_rho, null_correlation, attention);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kLayerTasks, draws, threads);
    std::vector<LayersRun> runs(tasks.size());
    tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      const StackShape& shape = kShapes[draws.instance(k) % kShapes.size()];
      const StackSettings stack{
          .layers = shape.layers,
          .heads = shape.heads,
          .mlp = variant.mlp,
          .causal = shape.causal,
          .train_values = variant.train_values,
          .training = {.steps = kLayerSteps, .seed = settings.seed, .instance = draws.instance(k)}};
      runs[k] = train_and_judge_stack(tasks[k], stack, variant.askers, alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const LayersRun& run = runs[k];
      const std::size_t shape = draws.instance(k) % kShapes.size();
      const bool holds = run.worst <= kClose && run.beats_null;
      ++tasks_of[shape];
      held[shape] += holds ? 1 : 0;
      for (const HeadMargin& head : run.heads) {
        off[shape].push_back(1 - head.last_correlation.value);
        rho.push_back(head.last_rho.value);
        null_rho.push_back(head.last_rho.mean());
        null_correlation.push_back(head.last_correlation.mean());
        attention.push_back(head.attention);
      }
      tally.add(tasks[k], holds, run.worst,
                fmt::format("{} layers of {}: largest 1 - correlation {:.3g}{}", kShapes[shape].layers,
                            kShapes[shape].heads, run.worst, run.beats_null ? "" : "; the null is not behind"),
                {{"x_W", Array::own(run.W)}});
    }
  });
  for (std::size_t s = 0; s < kShapes.size(); ++s) {
    const auto label = fmt::format("{} layers, {} {}, {}", kShapes[s].layers, kShapes[s].heads,
                                   kShapes[s].heads == 1 ? "head" : "heads", kShapes[s].causal ? "causal" : "full");
    if (off[s].empty()) continue;
    tally.figure(label + ": median 1 - correlation", median(off[s]));
    tally.share(label + ": share that held", held[s], tasks_of[s]);
  }
  tally.figure("median share of the largest margin", median(rho));
  tally.figure("null: median of the mean share", median(null_rho));
  tally.figure("null: median of the mean correlation", median(null_correlation));
  if (!attention.empty())
    tally.figure("smallest attention of a selected token", *std::min_element(attention.begin(), attention.end()));
  return std::move(tally).result();
}

}  // namespace

ClaimResult test_layers_live(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_layers({}, claim, settings, threads);
}

ClaimResult test_layers_all(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_layers({.askers = Askers::all}, claim, settings, threads);
}

ClaimResult test_layers_values(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_layers({.train_values = true}, claim, settings, threads);
}

ClaimResult test_layers_mlp(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  return test_layers({.mlp = 16}, claim, settings, threads);
}

}  // namespace attsvm::internal
