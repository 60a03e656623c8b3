// Claims about nonlinear heads, and the lemma that ties prompts to weights.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "attsvm/equivalence.h"
#include "attsvm/optimality.h"
#include "attsvm/verify.h"
#include "theory/claim_tests.h"
#include "theory/claim_tools.h"

namespace attsvm {
namespace {

constexpr double kKept = 1e-3;  // attention from which a token counts as kept

struct Fitted {
  bool applies = false;
  Index kept = 0, queries = 0;
  double equivalence = 0, gen = 0, single = 0;  // 1 − correlation with W
};

/// The equivalence of a run that dropped some tokens for good (attention at most `gone`), kept several of some query,
/// and is undecided about none.
Fitted fit(const AttentionTask& task, const RowMatrix& W, double gone, Threads& alone) {
  const AttentionMap map = attention_map(task, W, alone);
  const Selection kept = kept_tokens(task, map.log_weights, kKept);
  Fitted fitted{.queries = task.queries()};
  bool any_gone = false, any_between = false;
  for (Index i = 0; i < task.queries(); ++i) {
    fitted.kept += static_cast<Index>(kept.kept(i).size());
    for (Index t = 0; t < task.visible(i); ++t) {
      const double log_weight = map.log_weights(i, t);
      any_gone = any_gone || log_weight <= std::log(gone);
      any_between = any_between || (log_weight > std::log(gone) && log_weight <= std::log(kKept));
    }
  }
  if (!any_gone || any_between || kept.is_single()) return fitted;
  MarginSolver solver(alone);
  const Equivalence found = fit_equivalence(task, kept, W, map.log_weights, solver);
  if (!found.holds_together() || found.single.status != MarginStatus::optimal) return fitted;
  fitted.applies = true;
  fitted.equivalence = 1 - correlation(W, found.W);
  fitted.gen = distance(W, found.gen);
  fitted.single = distance(W, found.single);
  return fitted;
}

ClaimResult test_equivalence(std::span<const Recipe> recipes, const TrainSettings& training, double gone,
                             Index most_draws, const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  Tally tally(claim, settings);
  struct Seen {
    Mean equivalence, gen, single;
    Index draws = 0;
  };
  std::vector<Seen> seen(recipes.size());
  Index better_than_gen = 0;
  Mean kept;
  std::size_t which = 0;
  tally.for_batches(most_draws * tally.wanted(), [&](Index first, Index count) {
    const std::size_t r = which++ % recipes.size();
    const auto tasks = draw_tasks(recipes[r], settings.seed, first, count);
    TrainSettings mine = training;
    mine.seed = settings.seed;
    mine.instance = static_cast<std::uint32_t>(first);
    const auto runs = train_many(tasks, mine, threads);
    std::vector<Fitted> fits(tasks.size());
    each_task(threads, count, [&](std::size_t k, Threads& alone) { fits[k] = fit(tasks[k], runs[k].W, gone, alone); });
    for (std::size_t k = 0; k < tasks.size() && !tally.full(); ++k) {
      const Fitted& one = fits[k];
      ++seen[r].draws;
      if (!one.applies) continue;
      seen[r].equivalence.add(one.equivalence);
      seen[r].gen.add(one.gen);
      seen[r].single.add(one.single);
      kept.add(static_cast<double>(one.kept) / static_cast<double>(one.queries));
      better_than_gen += one.equivalence <= one.gen ? 1 : 0;
      tally.add(tasks[k], one.equivalence < one.single, one.equivalence,
                fmt::format("1 - correlation is {:.3g} for the equivalence and {:.3g} for the one-token SVM",
                            one.equivalence, one.single),
                {{"x_W", Array::own(runs[k].W)}});
    }
  });
  for (std::size_t r = 0; r < recipes.size(); ++r) {
    if (seen[r].draws == 0) continue;
    const auto label = [&](std::string_view what) { return fmt::format("d = {}: {}", recipes[r].d, what); };
    tally.share(label("share of runs that fit the conditions"), seen[r].equivalence.count(), seen[r].draws);
    tally.figure(label("mean 1 - correlation, equivalence"), seen[r].equivalence.value());
    tally.figure(label("mean 1 - correlation, Gen-SVM alone"), seen[r].gen.value());
    tally.figure(label("mean 1 - correlation, one token"), seen[r].single.value());
  }
  tally.figure("mean number of tokens kept a query", kept.value());
  tally.share("share in which the finite part helps", better_than_gen, kept.count());
  return std::move(tally).result();
}

}  // namespace

ClaimResult test_equivalence_relu(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr auto kAt = [](Index d) { return Recipe{.n = 3, .T = 4, .d = d, .head = HeadKind::hidden}; };
  constexpr std::array kSizes{kAt(4), kAt(6), kAt(8)};
  const TrainSettings training{.steps = 2001, .init = Init::random};
  return test_equivalence(kSizes, training, 1e-6, 32, claim, settings, threads);
}

ClaimResult test_equivalence_quadratic(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr auto kAt = [](Index d) {
    return Recipe{.law = Law::orthonormal, .n = 3, .T = 4, .d = d, .head = HeadKind::quadratic, .lambda = 0.3};
  };
  constexpr std::array kSizes{kAt(6), kAt(10)};
  // Plain steps: normalized ones bounce around the interior equilibrium. Dropped tokens fade like 1/(step · steps), so
  // that 1e-6 would take millions of steps, and longer steps are not stable.
  const TrainSettings training{.optimizer = Optimizer::gd, .step = 50, .steps = 20000};
  return test_equivalence(kSizes, training, 1e-4, 8, claim, settings, threads);
}

ClaimResult test_lemma(const Claim& claim, const ClaimSettings& settings, Threads& threads) {
  constexpr Recipe kRecipe{.n = 6, .T = 8, .d = 10, .pattern = QueryPattern::prompt};
  constexpr Index kSize = 4, kSteps = 1000;
  constexpr double kSame = 1e-9;  // of the largest logit
  constexpr std::uint32_t kQueryStream = 0x5c0e0300;
  Tally tally(claim, settings);
  tally.for_batches(0, [&](Index first, Index count) {
    const auto prompts = draw_tasks(kRecipe, settings.seed, first, count);
    std::vector<double> worst(prompts.size(), 0);
    std::vector<RowMatrix> queries(prompts.size());
    each_task(threads, count, [&](std::size_t k, Threads& alone) {
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

}  // namespace attsvm
