// The claim that weights grow without bound, in two cases.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "train/gradient.h"

namespace attsvm::internal {
namespace {

constexpr std::array kPointSizes{1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0};  // norms of the points W
constexpr std::uint32_t kDirections = 4;                                 // random ones of each size
constexpr std::uint32_t kPointStream = 0x5c0e0002;

/// cos(∇L(W), W^mm) at points of every size: zero, random ones, and those straight away from W^mm.
Slopes look_at(const AttentionTask& task, const RowMatrix& svm, std::uint64_t seed, std::uint32_t instance,
               Threads& alone) {
  GradientPass pass(task, {}, alone);
  LossGradient found;
  Slopes slopes;
  const auto look = [&](const RowMatrix& W) {
    pass.evaluate(W, task.head(), {}, found);
    const RowMatrix& G = found.W.direction;
    slopes.add(G.cwiseProduct(svm).sum() / (G.norm() * svm.norm()), W);
  };
  look(RowMatrix::Zero(svm.rows(), svm.cols()));
  for (std::size_t s = 0; s < kPointSizes.size(); ++s) {
    look(-kPointSizes[s] / svm.norm() * svm);
    for (std::uint32_t k = 0; k < kDirections; ++k) {
      const Random random(seed, instance, kPointStream + static_cast<std::uint32_t>(s) * kDirections + k);
      look(random_matrix(random, svm.rows(), svm.cols(), kPointSizes[s]));
    }
  }
  return slopes;
}

/// Whether a run advances along W^mm from record to record, and its norm grows at the end.
bool grows(const TrainedRun& run, const RowMatrix& svm) {
  double along = -kUnmeasured;
  for (const Record& record : run.records) {
    const double now = record.W.cwiseProduct(svm).sum();
    if (!(now > along)) return false;
    along = now;
  }
  const std::size_t last = run.records.size() - 1;
  return run.records[last].norm > run.records[last - 1].norm && run.records[last - 1].norm > run.records[last - 2].norm;
}

bool all_are_support(const MarginSolution& solution) {
  return solution.status == MarginStatus::optimal && solution.support == solution.slack.size();
}

/// The results of one batch of tasks that meet a condition.
struct SeenDivergence {
  std::vector<Slopes> slopes;
  std::vector<TrainedRun> runs;
};

SeenDivergence look_and_train(Tally& tally, std::span<const AttentionTask> tasks, std::span<const MarginSolution> svm,
                              Index first, Threads& threads) {
  const std::uint64_t seed = tally.seed();
  SeenDivergence seen;
  seen.slopes.resize(tasks.size());
  tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
    seen.slopes[k] =
        look_at(tasks[k], svm[k].W, seed, static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(k), alone);
  });
  const TrainSettings training{.steps = 2000,
                               .init = Init::random,
                               .seed = seed,
                               .instance = static_cast<std::uint32_t>(first),
                               .record = {.at = {0, 125, 250, 500, 1000, 2000}}};
  seen.runs = train_many(tasks, training, threads);
  return seen;
}

}  // namespace

ClaimResult test_divergence(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kEqual{.n = 6, .T = 8, .d = 10}, kSupport{.n = 3, .T = 4, .d = 24};
  constexpr Index kMostDraws = 16;  // per task wanted
  Tally tally(claim, settings);
  Index points = 0, undecided = 0, rising = 0, draws = 0, met = 0, equal = 0, all_support = 0;
  tally.continues(points, undecided, draws, met, equal, all_support);
  const auto count = [&](std::span<const AttentionTask> tasks, std::span<const MarginSolution> svm,
                         const SeenDivergence& seen, Index most, Index& counted) {
    for (std::size_t k = 0; k < tasks.size() && counted < most; ++k, ++counted) {
      const Slopes& slopes = seen.slopes[k];
      const bool grew = grows(seen.runs[k], svm[k].W);
      points += slopes.points;
      undecided += slopes.undecided;
      tally.add(tasks[k], slopes.largest < 0 && grew, slopes.largest,
                slopes.largest < 0 ? "a run from a random start does not grow along W^mm"
                : slopes.largest == kUnmeasured
                    ? "the gradient at x_W is zero, or not a number"
                    : fmt::format("the gradient at x_W has cosine {:.3g} with W^mm", slopes.largest),
                {{"x_W", Array::own(slopes.where)}});
    }
  };
  const Index half = tally.wanted() / 2;
  tally.for_batches(kMostDraws * tally.wanted(), [&](Index first, Index batch) {
    if (equal < tally.wanted() - half) {
      const auto tasks = draw_equal_scores(kEqual, {settings.seed, first, batch});
      const auto svm = solve_verified(attention_problems(tasks, optimal_of(tasks)), Norm::frobenius(), threads);
      count(tasks, svm, look_and_train(tally, tasks, svm, first, threads), tally.wanted() - half, equal);
    }
    if (all_support >= half) return;
    std::vector<AttentionTask> tasks;
    std::vector<MarginSolution> svm;
    auto drawn = draw_tasks(kSupport, {settings.seed, first, batch}, threads);
    auto solved = solve_verified(attention_problems(drawn, optimal_of(drawn)), Norm::frobenius(), threads);
    for (std::size_t k = 0; k < drawn.size(); ++k) {
      ++draws;
      if (!all_are_support(solved[k])) continue;
      ++met;
      tasks.push_back(std::move(drawn[k]));
      svm.push_back(std::move(solved[k]));
    }
    count(tasks, svm, look_and_train(tally, tasks, svm, first, threads), half, all_support);
  });
  // For comparison: tasks that need meet neither condition.
  const Index compared = tally.ended() ? std::min<Index>(tally.wanted(), 32) : 0;
  const auto others = draw_tasks(kEqual, {settings.seed, 0, compared}, threads);
  const auto svm = solve_verified(attention_problems(others, optimal_of(others)), Norm::frobenius(), threads);
  std::vector<Slopes> slopes(others.size());
  for_each_alone(std::ssize(others), threads, [&](std::size_t k, Threads& alone) {
    slopes[k] = look_at(others[k], svm[k].W, settings.seed, static_cast<std::uint32_t>(k), alone);
  });
  for (const Slopes& one : slopes) rising += one.largest >= 0 ? 1 : 0;
  tally.figure("tasks with equal scores", static_cast<double>(equal));
  tally.figure("tasks of support tokens alone", static_cast<double>(all_support));
  tally.share("share of draws (3,4,24) whose tokens are all support tokens", met, draws);
  tally.share("share of points whose sign is lost to rounding", undecided, points);
  tally.share("share of tasks with neither condition that have a W where the product is positive", rising, compared);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
