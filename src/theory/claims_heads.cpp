// Claims about nonlinear heads, and the lemma that ties prompts to weights.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attsvm/theory.h"
#include "attsvm/verify.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"
#include "theory/selections.h"

namespace attsvm::internal {
namespace {

constexpr double kKept = 1e-3;  // attention from which a token counts as kept

struct Fitted {
  bool applies = false, idle = false;  // idle: some query's output is exactly 0, where a ReLU head has no slope
  Index kept = 0, queries = 0;
  double equivalence = 0, gen = 0, single = 0;  // 1 − correlation with W

  bool held() const { return equivalence < single; }
};

bool has_idle_query(const AttentionTask& task, const RowMatrix& log_weights) {
  for (Index i = 0; i < task.queries(); ++i) {
    Eigen::VectorXd s(task.visible(i));
    for (Index k = 0; k < s.size(); ++k) s(k) = std::exp(log_weights(i, task.seen(i)[static_cast<std::size_t>(k)]));
    if (task.head().value(task.seen_values(i).transpose() * s) == 0) return true;
  }
  return false;
}

/// The equivalence of a run that dropped some tokens (attention at most `gone`), kept several tokens of some query, and
/// left no attention in between.
Fitted fit(const AttentionTask& task, const RowMatrix& W, double gone, Threads& alone) {
  const AttentionMap map = attention_map(task, W, alone);
  const Selection kept = kept_tokens(task, map.log_weights, kKept);
  Fitted fitted{.queries = task.queries()};
  bool any_gone = false, any_between = false;
  for (Index i = 0; i < task.queries(); ++i) {
    fitted.kept += static_cast<Index>(kept.kept(i).size());
    for (const Index t : task.seen(i)) {
      const double log_weight = map.log_weights(i, t);
      any_gone = any_gone || log_weight <= std::log(gone);
      any_between = any_between || (log_weight > std::log(gone) && log_weight <= std::log(kKept));
    }
  }
  if (!any_gone || any_between || kept.is_single()) return fitted;
  MarginSolver solver(alone);
  const Equivalence found = fit_equivalence(task, kept, W, map.log_weights, {}, solver);
  require_verified(MarginProblem::attention(task, kept), found.gen);
  require_verified(MarginProblem::attention(task, Selection::single(map.selected)), found.single);
  if (!found.holds_together() || found.single.status != MarginStatus::optimal) return fitted;
  fitted.applies = true;
  fitted.idle = has_idle_query(task, map.log_weights);
  fitted.equivalence = 1 - correlation(W, found.W);
  fitted.gen = distance(W, found.gen);
  fitted.single = distance(W, found.single);
  return fitted;
}

/// Training settings, and the attention up to which a token counts as dropped after these steps.
struct Way {
  std::string_view name;
  TrainSettings training;
  double gone;
};

/// The results of the runs of one kind.
struct SeenHeads {
  Mean equivalence, gen, single;
  Index draws = 0, held = 0, idle = 0;

  void add(const Fitted& one) {
    ++draws;
    if (!one.applies) return;
    equivalence.add(one.equivalence);
    gen.add(one.gen);
    single.add(one.single);
    held += one.held() ? 1 : 0;
    idle += one.idle ? 1 : 0;
  }
  auto numbers() { return std::tie(equivalence, gen, single, draws, held, idle); }
  void report(std::string_view label, Tally& tally) const {
    const Index count = equivalence.count();
    tally.share(fmt::format("{}: share of runs that fit the conditions", label), count, draws);
    if (count == 0) return;
    tally.figure(fmt::format("{}: mean 1 - correlation, equivalence", label), equivalence.value());
    tally.figure(fmt::format("{}: mean 1 - correlation, Gen-SVM alone", label), gen.value());
    tally.figure(fmt::format("{}: mean 1 - correlation, one token", label), single.value());
    tally.share(fmt::format("{}: share that held", label), held, count);
    tally.share(fmt::format("{}: share with a query whose output is exactly 0", label), idle, count);
  }
};

/// Trains with the first settings for the claim, and with all of them on the first tasks for comparison.
ClaimResult test_equivalence(std::span<const Recipe> recipes, std::span<const Way> ways, Index most_draws,
                             const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  Tally tally(claim, settings);
  std::vector<SeenHeads> by_size(recipes.size()), by_way(ways.size());
  Mean kept;
  Index batch = 0;
  tally.continues(by_size, by_way, kept, batch);
  tally.for_batches(most_draws * tally.wanted(), [&](Index first, Index count) {
    const std::size_t size = static_cast<std::size_t>(batch) % recipes.size();
    const bool compares = batch < std::ssize(recipes);
    const auto tasks = draw_tasks(recipes[size], {settings.seed, first, count}, threads);
    for (std::size_t w = 0; w < (compares ? ways.size() : 1); ++w) {
      TrainSettings training = ways[w].training;
      training.seed = settings.seed;
      training.instance = static_cast<std::uint32_t>(first);
      const auto runs = train_many(tasks, training, threads);
      std::vector<Fitted> fits(tasks.size());
      tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
        fits[k] = fit(tasks[k], runs[k].W, ways[w].gone, alone);
      });
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        const Fitted& one = fits[k];
        if (compares) by_way[w].add(one);
        if (w > 0 || tally.full()) continue;
        by_size[size].add(one);
        if (!one.applies) continue;
        kept.add(static_cast<double>(one.kept) / static_cast<double>(one.queries));
        tally.add(tasks[k], one.held(), one.equivalence,
                  fmt::format("1 - correlation is {:.3g} for the equivalence and {:.3g} for the one-token SVM{}",
                              one.equivalence, one.single,
                              one.idle ? "; the output of some query is exactly 0, where the head has no slope" : ""),
                  {{"x_W", Array::own(runs[k].W)}});
      }
    }
    ++batch;
  });
  if (kept.count() > 0) tally.figure("mean number of tokens kept per query", kept.value());
  for (std::size_t r = 0; r < recipes.size(); ++r) by_size[r].report(fmt::format("d = {}", recipes[r].d), tally);
  for (std::size_t w = 0; w < ways.size() && ways.size() > 1; ++w) by_way[w].report(ways[w].name, tally);
  return std::move(tally).result();
}

}  // namespace

ClaimResult test_equivalence_relu(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr auto kAt = [](Index d) { return Recipe{.n = 3, .T = 4, .d = d, .head = HeadKind::hidden}; };
  constexpr std::array kSizes{kAt(4), kAt(6), kAt(8)};
  constexpr double kPublishedEpsilon = 0x1p-52;
  const std::array ways{
      Way{"as published",
          {.steps = 2001, .epsilon = kPublishedEpsilon, .arithmetic = Arithmetic::plain, .init = Init::random},
          1e-6},
      Way{"exact arithmetic", {.steps = 2001, .init = Init::random}, 1e-6},
      Way{"gradient descent", {.optimizer = Optimizer::gd, .step = 10, .steps = 20000, .init = Init::random}, 1e-4}};
  return test_equivalence(kSizes, ways, 32, claim, settings, threads);
}

ClaimResult test_equivalence_quadratic(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr auto kAt = [](Index d) {
    return Recipe{.law = Law::orthonormal, .n = 3, .T = 4, .d = d, .head = HeadKind::quadratic, .lambda = 0.3};
  };
  constexpr std::array kSizes{kAt(6), kAt(10)};
  // Plain steps: normalized ones bounce around the interior equilibrium. Dropped tokens fade like 1/(step · steps), so
  // that 1e-6 would take millions of steps, and longer steps are not stable.
  const std::array ways{Way{"gradient descent", {.optimizer = Optimizer::gd, .step = 50, .steps = 20000}, 1e-4}};
  return test_equivalence(kSizes, ways, 8, claim, settings, threads);
}

ClaimResult test_lemma(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 6, .T = 8, .d = 10, .pattern = QueryPattern::prompt};
  constexpr Index kSize = 4, kSteps = 1000;
  constexpr double kSame = 1e-9;  // relative to the largest logit
  constexpr std::uint32_t kQueryStream = 0x5c0e0300;
  Tally tally(claim, settings);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto prompts = draw_tasks(kRecipe, {settings.seed, first, count}, threads);
    std::vector<double> worst(prompts.size(), 0);
    std::vector<RowMatrix> queries(prompts.size());
    tally.for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
      const auto instance = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(k);
      const AttentionTask& prompt = prompts[k];
      const RowMatrix u = random_matrix(Random(settings.seed, instance, kQueryStream), 1, kSize, 1.5);
      queries[k] = u.replicate(prompt.queries(), 1);
      TaskArrays arrays = prompt.arrays();
      arrays.queries = Array::own(queries[k]);
      const AttentionTask cross(std::move(arrays));
      TrainSettings training{
          .param = Parametrization::p, .optimizer = Optimizer::gd, .step = 1, .steps = kSteps, .record = {.every = 10}};
      const RowMatrix p0 = random_matrix(Random(settings.seed, instance, kQueryStream + 1), prompt.key_size(), 1, 1);
      const TrainedRun by_p = train(prompt, training, alone, {.W = p0});
      training.param = Parametrization::W;
      training.step /= u.squaredNorm();
      const TrainedRun by_W = train(cross, training, alone, {.W = p0 * u / u.squaredNorm()});
      for (std::size_t r = 0; r < by_p.records.size(); ++r) {
        for (Index s = 0; s < prompt.sequences(); ++s) {
          const Eigen::VectorXd a = prompt.keys(s) * by_p.records[r].W;
          const Eigen::VectorXd b = prompt.keys(s) * (by_W.records[r].W * u.transpose());
          worst[k] = std::max(worst[k], (a - b).cwiseAbs().maxCoeff() / std::max(1.0, a.cwiseAbs().maxCoeff()));
        }
      }
    });
    for (std::size_t k = 0; k < prompts.size(); ++k) {
      tally.add(prompts[k], worst[k] <= kSame, worst[k], fmt::format("logits differ by {:.3g} of their size", worst[k]),
                {{"x_queries", Array::own(queries[k])}});
    }
  });
  return std::move(tally).result();
}

}  // namespace attsvm::internal
