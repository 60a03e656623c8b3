// Claims about positions: equal words cannot be told apart without them.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attsvm/positions.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"

namespace attsvm::internal {
namespace {

constexpr Index kPlacedSequences = 4, kPlacedLength = 6, kPlacedWords = 4, kPlacedSize = 8;
constexpr std::uint32_t kPlacedStream = 0x5c0e0500;  // words and scores of the tokens
constexpr std::array kPlacedKinds{PositionKind::sinusoidal, PositionKind::rotary, PositionKind::bias};

/// Self attention of the last token of each sequence over words that repeat; every token has a score of its own.
AttentionTask repeating_words(std::uint64_t seed, Index instance) {
  const AttentionTask words =
      draw_task({.n = 1, .T = kPlacedWords, .d = kPlacedSize, .pattern = QueryPattern::prompt}, seed, instance);
  const Random random(seed, static_cast<std::uint32_t>(instance), kPlacedStream);
  constexpr Index kTokens = kPlacedSequences * kPlacedLength;
  RowMatrix keys(kTokens, kPlacedSize);
  std::vector<double> scores;
  for (Index t = 0; t < kTokens; ++t) {
    const auto at = static_cast<std::uint64_t>(2 * t);
    keys.row(t) = words.keys(0).row(static_cast<Index>(random.below(kPlacedWords, at)));
    scores.push_back(random.normal(at + 1));
  }
  TaskArrays arrays;
  arrays.tokens = Array::own(std::move(scores), {kPlacedSequences, kPlacedLength, 1});
  arrays.keys = Array::own(keys);
  arrays.keys.shape = {kPlacedSequences, kPlacedLength, kPlacedSize};
  arrays.query_token =
      Array::own(std::vector<Index>(static_cast<std::size_t>(kPlacedSequences), kPlacedLength - 1), {kPlacedSequences});
  arrays.head = Array::own(std::vector<double>{1}, {1});
  return AttentionTask(std::move(arrays));
}

/// The runs of one task, with each kind of positions and without.
struct PlacedRuns {
  std::array<RowMatrix, kPlacedKinds.size()> W;
  std::array<double, kPlacedKinds.size()> off{};  ///< 1 − correlation with the SVM of the run's own tokens
  double largest = 0;  ///< without positions: largest attention of a token whose word its query sees twice
};

PlacedRuns train_with_positions(const AttentionTask& task, Threads& alone) {
  const TrainSettings training{.steps = 20'000, .init = Init::zero};
  PlacedRuns runs;
  for (std::size_t j = 0; j < kPlacedKinds.size(); ++j) {
    const AttentionTask placed = with_positions(task, {.kind = kPlacedKinds[j]});
    runs.W[j] = train(placed, training, alone).W;
    const MarginProblem problem =
        MarginProblem::attention(placed, Selection::single(attention_map(placed, runs.W[j], alone).selected));
    const MarginSolution svm = solve(problem, {}, alone);
    require_verified(problem, svm);
    runs.off[j] = distance(runs.W[j], svm);
  }
  const AttentionMap map = attention_map(task, train(task, training, alone).W, alone);
  for (Index i = 0; i < task.queries(); ++i) {
    const ConstRows X = task.keys(i);
    for (Index t = 0; t < X.rows(); ++t) {
      Index copies = 0;
      for (Index other = 0; other < X.rows(); ++other) copies += X.row(other) == X.row(t) ? 1 : 0;
      if (copies > 1) runs.largest = std::max(runs.largest, std::exp(map.log_weights(i, t)));
    }
  }
  return runs;
}

}  // namespace

ClaimResult test_positions(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr double kThere = 1e-3;
  Tally tally(claim, settings);
  std::array<std::vector<double>, kPlacedKinds.size()> off;
  double most = 0;
  tally.continues(off, most);
  tally.for_batches(0, [&](Index first, Index count) {
    std::vector<AttentionTask> tasks;
    for (Index k = first; k < first + count; ++k) tasks.push_back(repeating_words(settings.seed, k));
    std::vector<PlacedRuns> runs(tasks.size());
    tally.for_each_alone(count, threads,
                         [&](std::size_t k, Threads& alone) { runs[k] = train_with_positions(tasks[k], alone); });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const auto& list = runs[k].off;
      const auto worst = static_cast<std::size_t>(std::max_element(list.begin(), list.end()) - list.begin());
      for (std::size_t j = 0; j < off.size(); ++j) off[j].push_back(list[j]);
      most = std::max(most, runs[k].largest);
      tally.add(with_positions(tasks[k], {.kind = kPlacedKinds[worst]}), list[worst] <= kThere, list[worst],
                fmt::format("{} positions: 1 - correlation {:.3g}", name_of(kPlacedKinds[worst]), list[worst]),
                {{"x_W", Array::own(runs[k].W[worst])}});
    }
  });
  for (std::size_t j = 0; j < off.size(); ++j)
    tally.figure(fmt::format("{}: median 1 - correlation", name_of(kPlacedKinds[j])), median(off[j]));
  tally.figure("without positions: largest attention of a token whose word occurs twice", most);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
