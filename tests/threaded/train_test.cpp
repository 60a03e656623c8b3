// Gradients, runs and claims give the same bytes for any number of threads.
#include "attsvm/train.h"

#include <vector>

#include "base/random.h"
#include "support.h"
#include "train/gradient.h"

namespace attsvm {
namespace {

TEST(ThreadedGradient, AnyNumberOfThreadsGivesTheSameBits) {
  const AttentionTask task = generate({.n = 60, .T = 30, .d = 40, .shortest = 10}, 5).task;
  RowMatrix W(40, 40);
  Random(5, 0, 0).normals({W.data(), static_cast<std::size_t>(W.size())});
  W *= 10;
  LossGradient first;
  for (const int count : {1, 2, 3}) {
    Threads threads(count);
    LossGradient at;
    GradientPass(task, {.head_gradient = true, .excess = true}, threads).evaluate(W, task.head(), {}, at);
    if (count == 1) first = at;
    EXPECT_EQ(at.W.direction, first.W.direction);
    EXPECT_EQ(at.v.direction, first.v.direction);
    EXPECT_EQ(at.loss, first.loss);
    EXPECT_EQ(at.log_excess, first.log_excess);
  }
}

TEST(ThreadedLanes, ManyHaveTheBitsOfSingleRuns) {
  const auto make_task = [](QueryPattern pattern, std::uint32_t instance, Index shortest) {
    return generate({.n = 5, .T = 7, .d = 6, .shortest = shortest, .pattern = pattern}, 5, instance).task;
  };
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < 21; ++k) tasks.push_back(make_task(QueryPattern::cross, k, k % 2 == 0 ? 3 : 0));
  for (std::uint32_t k = 0; k < 5; ++k) tasks.push_back(make_task(QueryPattern::causal, k, 0));
  tasks.push_back(generate({.n = 64, .T = 32, .d = 32}, 1).task);  // too large for a lane
  Threads two(2), one(1);
  for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
    for (const Optimizer optimizer : {Optimizer::gd, Optimizer::ngd, Optimizer::adam, Optimizer::signum,
                                      Optimizer::lion, Optimizer::muon, Optimizer::steepest}) {
      TrainSettings settings{.param = param, .optimizer = optimizer, .steps = 60, .schedule = Schedule::sqrt};
      settings.record.every = 25;
      const std::vector<TrainedRun> many = train_many(tasks, settings, two);
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        TrainSettings mine = settings;
        mine.instance = static_cast<std::uint32_t>(k);
        const TrainedRun alone = train(tasks[k], mine, one);
        EXPECT_EQ(many[k].W, alone.W) << k;
        EXPECT_EQ(many[k].K, alone.K) << k;
        EXPECT_EQ(many[k].Q, alone.Q) << k;
        EXPECT_EQ(many[k].loss, alone.loss);
        EXPECT_EQ(many[k].log_gradient, alone.log_gradient);
        EXPECT_EQ(many[k].steps, alone.steps);
        EXPECT_EQ(many[k].stop, alone.stop);
        ASSERT_EQ(many[k].records.size(), alone.records.size());
        for (std::size_t r = 0; r < alone.records.size(); ++r) {
          EXPECT_EQ(many[k].records[r].W, alone.records[r].W);
          EXPECT_EQ(many[k].records[r].step, alone.records[r].step);
          EXPECT_EQ(many[k].records[r].log_loss, alone.records[r].log_loss);
        }
      }
    }
  }
}

TEST(ThreadedTrain, ManyAtOnceAreTheSameAsOneByOne) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < 40; ++k) {
    tasks.push_back(
        generate({.n = 2 + k % 5, .T = 3 + k % 4, .d = 4, .head = k % 3 == 0 ? HeadKind::hidden : HeadKind::linear}, 9,
                 k)
            .task);
  }
  Threads alone(1);
  for (const Parametrization param : {Parametrization::W, Parametrization::KQ}) {
    const TrainSettings settings{.param = param, .steps = 50, .seed = 3, .record = {.every = 25}};
    for (const int count : {1, 3}) {
      Threads threads(count);
      const auto runs = train_many(tasks, settings, threads);
      ASSERT_EQ(runs.size(), tasks.size());
      for (std::size_t k = 0; k < runs.size(); ++k) {
        TrainSettings mine = settings;
        mine.instance = static_cast<std::uint32_t>(k);
        const TrainedRun one = train(tasks[k], mine, alone);
        EXPECT_EQ(runs[k].W, one.W);
        EXPECT_EQ(runs[k].loss, one.loss);
        ASSERT_EQ(runs[k].records.size(), 3U);
        EXPECT_EQ(runs[k].records[1].W, one.records[1].W);
      }
    }
  }
  test::expect_refusal([&] { train_many(tasks, {}, alone, std::vector<Start>(3)); }, {"starts", "3", "40"});
}

void expect_same(const ClaimResult& a, const ClaimResult& b) {
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.held, b.held);
  EXPECT_EQ(a.worst, b.worst);
  ASSERT_EQ(a.figures.size(), b.figures.size());
  for (std::size_t k = 0; k < a.figures.size(); ++k) {
    EXPECT_EQ(a.figures[k].label, b.figures[k].label);
    EXPECT_EQ(a.figures[k].value, b.figures[k].value) << a.figures[k].label;
  }
  ASSERT_EQ(a.counterexample.has_value(), b.counterexample.has_value());
  if (!a.counterexample) return;
  EXPECT_EQ(a.counterexample->words, b.counterexample->words);
  test::expect_same_task(a.counterexample->task, b.counterexample->task);
}

TEST(ThreadedClaims, DependOnTheSeedAndNotOnTheThreads) {
  Threads one(1), three(3);
  for (const std::string_view name : {"separability", "divergence", "local", "kq-bias", "path-W", "joint-loose"}) {
    SCOPED_TRACE(name);
    const Claim& claim = *find_claims(name).front();
    const ClaimResult first = test_claim(claim, {.tasks = 2, .seed = 3}, one);
    expect_same(first, test_claim(claim, {.tasks = 2, .seed = 3}, three));
    const ClaimResult other = test_claim(claim, {.tasks = 2, .seed = 4}, three);
    if (name != "separability") {
      EXPECT_NE(first.worst, other.worst);
    }
  }
}

}  // namespace
}  // namespace attsvm
