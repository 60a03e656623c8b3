// The fast paths of training against the plain ones: queries of linear heads, runs in vector lanes.
#include <cmath>
#include <limits>

#include "base/random.h"
#include "support.h"
#include "train/gradient.h"
#include "train/lane_runs.h"
#include "train/query_pass.h"
#include "train/update.h"

namespace attsvm {
namespace {

/// Copies every second token with another key, so that scores tie.
AttentionTask with_ties(const AttentionTask& task) {
  TaskArrays arrays = task.arrays();
  const std::span<const double> tokens = f64_span(arrays.tokens);
  std::vector<double> values(tokens.begin(), tokens.end());
  const Index d = task.value_size();
  for (Index s = 0; s < task.sequences(); ++s) {
    for (Index t = task.offset(s) + 1; t < task.offset(s + 1); t += 2) {
      std::copy_n(values.begin() + (t - 1) * d, d, values.begin() + t * d);
    }
  }
  arrays.keys = arrays.tokens;
  arrays.tokens = Array::own(values, arrays.tokens.shape);
  return AttentionTask(arrays);
}

AttentionTask make_task(QueryPattern pattern, std::uint32_t instance, Index shortest = 0) {
  return generate({.n = 5, .T = 7, .d = 6, .shortest = shortest, .pattern = pattern}, 5, instance).task;
}

TEST(LinearQuery, IsExactQueryAtEverySaturation) {
  Threads threads(1);
  for (const double size : {0.0, 1.0, 50.0, 1000.0, 1e5}) {
    for (const bool ties : {false, true}) {
      AttentionTask task = generate({.n = 6, .T = 37, .d = 70, .shortest = 3}, 2).task;
      if (ties) task = with_ties(task);
      TokenScores scores;
      scores.compute(task, task.head().v, threads);
      const Eigen::VectorXd z = Eigen::VectorXd::LinSpaced(70, -1, 1) * size;
      for (Index i = 0; i < task.queries(); ++i) {
        const PassSettings settings;
        const PassChoice choice;
        const QueryInput in{task, settings, choice, task.head(), scores, i, 0, 6, z.data(), nullptr};
        QueryScratch scratch;
        Eigen::VectorXd plain(70), fast(70);
        const QueryGradient a = exact_query(in, scratch, plain.data(), nullptr);
        const QueryGradient b = linear_query(in, scratch, fast.data());
        EXPECT_NEAR(a.log_weight, b.log_weight, 1e-13 * std::abs(a.log_weight) + 1e-13);
        EXPECT_LT((plain - fast).norm(), 1e-12 * plain.norm()) << "size " << size << " query " << i;
        EXPECT_NEAR(a.loss, b.loss, 1e-14);
        EXPECT_EQ(a.sign, b.sign);
      }
    }
  }
}

/// The run by its definition, computed with GradientPass.
RowMatrix plain_run(const AttentionTask& task, const TrainSettings& settings, const Start& start) {
  Threads threads(1);
  const Head head = starting_head(task, settings, start);
  Parameters now = starting_point(task, settings, start, head), next = now;
  GradientPass pass(task, {.loss = settings.loss}, threads);
  Update update(settings, now);
  ChainRule chain;
  LossGradient at;
  for (Index step = 0; step < settings.steps; ++step) {
    pass.evaluate(now.W(), head, {}, at);
    update.apply(now, chain.apply(now, at, 0, Arithmetic::exact), 0, step, next);
    next.form_product();
    std::swap(now, next);
  }
  return now.W();
}

bool takes_lane(const AttentionTask& task, const TrainSettings& settings, const Start& start = {}) {
  const Head head = starting_head(task, settings, start);
  return lane_input(task, settings, head, starting_point(task, settings, start, head)).has_value();
}

TEST(Lanes, RunsAreThoseOfTheDefinition) {
  Threads threads(1);
  for (const QueryPattern pattern :
       {QueryPattern::prompt, QueryPattern::cross, QueryPattern::self, QueryPattern::causal}) {
    for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
      for (const Optimizer optimizer : {Optimizer::gd, Optimizer::ngd}) {
        for (const Loss loss : {Loss::logistic, Loss::exponential, Loss::linear}) {
          for (const bool ties : {false, true}) {
            AttentionTask task = make_task(pattern, 3, pattern == QueryPattern::cross ? 3 : 0);
            if (ties) task = with_ties(task);
            const TrainSettings settings{.param = param,
                                         .width = param == Parametrization::KQ ? 3 : 0,
                                         .optimizer = optimizer,
                                         .steps = 20,
                                         .epsilon = 0.01,
                                         .loss = loss,
                                         .init = Init::random};
            ASSERT_TRUE(takes_lane(task, settings));
            const RowMatrix plain = plain_run(task, settings, {});
            const TrainedRun run = train(task, settings, threads);
            EXPECT_LT((run.W - plain).norm(), 1e-11 * plain.norm());
            LossGradient at;
            GradientPass(task, {.loss = loss}, threads).evaluate(run.W, task.head(), {}, at);
            EXPECT_NEAR(run.loss, at.loss, 1e-11);
            if (run.loss > 0) {
              EXPECT_NEAR(run.log_loss, at.log_loss, 1e-11);
            }
            EXPECT_NEAR(run.log_gradient, at.W.log_norm(), 1e-9);
          }
        }
      }
    }
  }
}

TEST(Lanes, DirectionsStayRightAtAnySaturation) {
  Threads threads(1);
  for (const double size : {10.0, 1e3, 1e4, 1e5}) {
    for (const bool ties : {false, true}) {
      AttentionTask task = make_task(QueryPattern::cross, 8, 3);
      if (ties) task = with_ties(task);
      Start start;
      start.W = size * starting_point(task, {.init = Init::random}, {}, task.head()).W();
      const TrainSettings settings{.step = size, .steps = 1};
      ASSERT_TRUE(takes_lane(task, settings, start));
      LossGradient at;
      GradientPass(task, {}, threads).evaluate(start.W, task.head(), {}, at);
      const RowMatrix moved = (start.W - train(task, settings, threads, start).W) / size;
      EXPECT_LT((moved - at.W.direction / at.W.direction.norm()).norm(), 1e-10) << size;
    }
  }
}

TEST(Lanes, TakeOnlyWhatTheyDoRight) {
  const AttentionTask task = make_task(QueryPattern::cross, 1);
  EXPECT_TRUE(takes_lane(task, {}));
  EXPECT_FALSE(takes_lane(task, {.joint = true}));
  EXPECT_TRUE(takes_lane(task, {.optimizer = Optimizer::adamw}));
  EXPECT_FALSE(takes_lane(task, {.optimizer = Optimizer::adam, .betas = {{.9, .5}}}));  // steps of any length
  EXPECT_FALSE(takes_lane(task, {.optimizer = Optimizer::steepest, .norm = Norm::entrywise(3)}));
  EXPECT_FALSE(takes_lane(task, {.weight_decay = 0.1}));
  EXPECT_FALSE(takes_lane(task, {.arithmetic = Arithmetic::plain}));
  EXPECT_FALSE(takes_lane(task, {.step = 1e30}));  // could overflow
  EXPECT_FALSE(takes_lane(generate({.n = 64, .T = 32, .d = 32}, 1).task, {}));

  TaskArrays twins = task.arrays();  // equal keys with different values: the rounding of the pair would hide the rest
  std::vector<double> keys(f64_span(twins.tokens).begin(), f64_span(twins.tokens).end());
  std::copy_n(keys.begin(), 6, keys.begin() + 6);
  twins.keys = Array::own(keys, twins.tokens.shape);
  EXPECT_FALSE(takes_lane(AttentionTask(twins), {}));

  TaskArrays biased = task.arrays();
  biased.bias = Array::own(RowMatrix(RowMatrix::Zero(task.queries(), task.longest())));
  EXPECT_FALSE(takes_lane(AttentionTask(biased), {}));

  TaskArrays close = task.arrays();  // scores that differ in the seventh digit
  std::vector<double> tokens(f64_span(close.tokens).begin(), f64_span(close.tokens).end());
  for (std::size_t j = 0; j < 6; ++j) tokens[6 + j] = tokens[j] * (1 + 1e-7);
  close.tokens = Array::own(tokens, close.tokens.shape);
  EXPECT_FALSE(takes_lane(AttentionTask(close), {}));
}

}  // namespace
}  // namespace attsvm
