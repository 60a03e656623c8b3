// Claims about many heads of attention whose outputs add up.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/head_runs.h"

namespace attsvm::internal {
namespace {

const Recipe kHeadTasks{.n = 6, .T = 8, .d = 10};
constexpr Index kTaskHeads = 4;
constexpr double kCloseHead = 1e-2;  // 1 − correlation

/// The first head has the task's v, the others drawn ones.
TrainSettings heads_settings(const Draws& draws, std::size_t k, bool shared, Index steps) {
  return {
      .heads = kTaskHeads, .shared_norm = shared, .steps = steps, .seed = draws.seed, .instance = draws.instance(k)};
}

double worst_head(const std::vector<double>& list) { return *std::max_element(list.begin(), list.end()); }

std::map<std::string, Array> head_extras(const HeadsRun& heads) {
  const Index d = heads.run.W.rows() / kTaskHeads;
  const RowMatrix& W = heads.run.W;
  return {{"x_W", Array::own(std::vector<double>(W.data(), W.data() + W.size()), {kTaskHeads, d, W.cols()})},
          {"x_head", Array::own(std::vector<double>(heads.run.head.v.begin(), heads.run.head.v.end()),
                                {kTaskHeads, heads.run.head.v.size() / kTaskHeads})}};
}

}  // namespace

ClaimResult test_heads(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  Tally tally(claim, settings);
  std::array<std::vector<double>, 2> distances;
  tally.continues(distances);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kHeadTasks, draws, threads);
    std::vector<std::array<HeadsRun, 2>> runs(tasks.size());
    tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
      for (const bool shared : {false, true})
        runs[k].at(shared ? 1 : 0) = run_heads(tasks[k], heads_settings(draws, k, shared, 10'000), alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const auto& [own, shared] = runs[k];
      distances[0].insert(distances[0].end(), own.distance.begin(), own.distance.end());
      distances[1].insert(distances[1].end(), shared.distance.begin(), shared.distance.end());
      const double of_own = worst_head(own.distance), of_shared = worst_head(shared.distance);
      const double worst = std::max(of_own, of_shared);
      tally.add(tasks[k], worst <= kCloseHead, worst,
                fmt::format("largest 1 - correlation of a head {:.3g} with a norm per head, {:.3g} with one norm",
                            of_own, of_shared),
                head_extras(of_own > of_shared ? own : shared));
    }
  });
  tally.figure("norm per head: median 1 - correlation of a head", median(distances[0]));
  tally.figure("one norm: median 1 - correlation of a head", median(distances[1]));
  return std::move(tally).result();
}

ClaimResult test_heads_level(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr double kLevel = 1e-3;  // 1 − correlation
  Tally tally(claim, settings);
  std::vector<double> shared_level, own_level;
  tally.continues(shared_level, own_level);
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kHeadTasks, draws, threads);
    std::vector<std::array<HeadsRun, 2>> runs(tasks.size());
    tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
      for (const bool shared : {false, true})
        runs[k].at(shared ? 1 : 0) = run_heads(tasks[k], heads_settings(draws, k, shared, 40'000), alone);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const auto& [own, shared] = runs[k];
      own_level.push_back(own.level);
      shared_level.push_back(shared.level);
      tally.add(tasks[k], shared.level <= kLevel, shared.level,
                fmt::format("1 - correlation {:.3g} with the SVM of all heads; {:.3g} with a norm per head",
                            shared.level, own.level),
                head_extras(shared));
    }
  });
  tally.figure("one norm: median 1 - correlation with the SVM of all heads", median(shared_level));
  tally.figure("norm per head: the same", median(own_level));
  return std::move(tally).result();
}

ClaimResult test_heads_divide(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  Tally tally(claim, settings);
  Mean together, apart, trained;
  Index same = 0, all = 0, distinct = 0, heads = 0;
  tally.continues(together, apart, trained, same, all, distinct, heads);
  struct Outcome {
    HeadsRun run;
    HeadDivision apart, trained;
    Index same = 0;
  };
  tally.for_batches(0, [&](Index first, Index count) {
    const Draws draws{settings.seed, first, count};
    const auto tasks = draw_tasks(kHeadTasks, draws, threads);
    std::vector<Outcome> outcomes(tasks.size());
    tally.for_each_alone(std::ssize(tasks), threads, [&](std::size_t k, Threads& alone) {
      Outcome& outcome = outcomes[k];
      TrainSettings one = heads_settings(draws, k, false, 4'000);
      outcome.run = run_heads(tasks[k], one, alone);
      const std::vector<Index> selected = selected_alone(tasks[k], one, outcome.run.run, alone);
      outcome.apart = division_of(selected, kTaskHeads);
      for (std::size_t i = 0; i < selected.size(); ++i) outcome.same += selected[i] == outcome.run.selected[i] ? 1 : 0;
      one.joint = true;
      outcome.trained = division_of(attention_map(tasks[k], train(tasks[k], one, alone).W, alone).selected, kTaskHeads);
    });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const Outcome& outcome = outcomes[k];
      together.add(outcome.run.division.tokens_per_query);
      apart.add(outcome.apart.tokens_per_query);
      trained.add(outcome.trained.tokens_per_query);
      same += outcome.same;
      all += std::ssize(outcome.run.selected);
      distinct += outcome.run.division.distinct;
      heads += kTaskHeads;
      const double gain = outcome.run.division.tokens_per_query - outcome.apart.tokens_per_query;
      tally.add(tasks[k], gain > 0, -gain,
                fmt::format("{:.3g} different tokens per query together, {:.3g} apart",
                            outcome.run.division.tokens_per_query, outcome.apart.tokens_per_query),
                head_extras(outcome.run));
    }
  });
  tally.figure("trained together: different tokens per query of 4 heads", together.value());
  tally.figure("trained apart: the same", apart.value());
  tally.figure("trained together with their v's: the same", trained.value());
  tally.share("share of a head's tokens that are those it selects alone", same, all);
  tally.share("share of heads with a selection of their own", distinct, heads);
  return std::move(tally).result();
}

}  // namespace attsvm::internal
