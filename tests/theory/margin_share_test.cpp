// The share of the largest margin along runs, in several norms, and where it is heading.
#include <cmath>
#include <limits>
#include <random>

#include "margin_support.h"

namespace attsvm {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

RowMatrix random_matrix(Index rows, Index columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  return RowMatrix::NullaryExpr(rows, columns, [&](Index, Index) { return normal(random); });
}

std::vector<Norm> all_norms() {
  std::vector<Norm> norms = CheckSettings{}.norms;
  norms.push_back(Norm::entrywise(3));
  norms.push_back(Norm::schatten(3));
  return norms;
}

TEST(MarginShare, OfAnOptimumIsOneInItsNorm) {
  Threads threads(1);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, seed).task;
    const MarginProblem problem = MarginProblem::attention(task, optimal_tokens(task).selection);
    for (const Norm& norm : all_norms()) {
      const MarginSolution solution = solve(problem, {.norm = norm}, threads);
      ASSERT_TRUE(verify(task, stored(problem, solution, 1e-8)).valid) << norm.name();
      // The run that ended at the optimum, which the check solves for by itself.
      const RowMatrix W = 3 * solution.W;
      const Check check = check_run(task, RunTrace{.W = W}, {.norms = {norm}}, threads);
      ASSERT_EQ(check.selection, problem.selection());
      ASSERT_EQ(check.shares.size(), 1U);
      ASSERT_EQ(check.shares[0].rho.size(), 1U);
      EXPECT_NEAR(check.shares[0].rho[0], 1, 1e-9) << norm.name() << " seed " << seed;
      EXPECT_NEAR(margin_share(problem, solution, W), 1, 1e-9) << norm.name();
    }
  }
}

TEST(MarginShare, IsAtMostOneForAnyW) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 4, .T = 5, .d = 6}, 2).task;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const RowMatrix W = random_matrix(6, 6, seed);
    const Check check = check_run(task, RunTrace{.W = W}, {.norms = all_norms()}, threads);
    const MarginProblem problem = MarginProblem::attention(task, check.selection);
    ASSERT_EQ(check.shares.size(), all_norms().size());
    for (const MarginShares& shares : check.shares) {
      ASSERT_EQ(shares.status, MarginStatus::optimal);
      EXPECT_LE(shares.rho.at(0), 1 + 1e-9) << shares.norm.name();
      EXPECT_GT(shares.rho.at(0), 0) << "W meets its own selection";
      const MarginSolution solution = solve(problem, {.norm = shares.norm}, threads);
      const double margin = problem.values(W).minCoeff() / shares.norm.of(W);
      EXPECT_NEAR(shares.rho.at(0), margin * solution.objective, 1e-7) << shares.norm.name();
      EXPECT_NEAR(shares.rho.at(0), margin_share(problem, solution, W), 1e-7) << shares.norm.name();
    }
  }
}

TEST(MarginTrend, FitsThePowerOfTheLastDecade) {
  std::vector<Index> steps;
  std::vector<double> rho;
  for (Index step = 0; step <= 5000; step += 50) {
    steps.push_back(step);
    const auto t = static_cast<double>(step);
    rho.push_back(step < 500 ? 1 - t / 1000 : 1 - 3 * std::pow(t, -0.31));  // before the last decade: another law
  }
  const MarginTrend trend = margin_trend(steps, rho);
  EXPECT_NEAR(trend.exponent, -0.31, 1e-12);
  EXPECT_EQ(trend.rises, true);
  rho.back() = 0;
  EXPECT_EQ(margin_trend(steps, rho).rises, false);
}

TEST(MarginTrend, UsesOnlyPointsThatSaySomething) {
  EXPECT_EQ(margin_trend(std::vector<Index>{}, std::vector<double>{}).rises, std::nullopt);
  const auto at = [](std::initializer_list<Index> steps, std::initializer_list<double> rho, double resolution = 0) {
    return margin_trend(std::vector<Index>(steps), std::vector<double>(rho), resolution);
  };
  EXPECT_TRUE(std::isnan(at({100, 1000}, {.5, .9}).exponent)) << "two points";
  EXPECT_EQ(at({100, 1000}, {.5, .9}).rises, true);
  EXPECT_EQ(at({1, 1000}, {.5, .9}).rises, std::nullopt) << "one point in the last decade";
  EXPECT_EQ(at({100, 500, 1000}, {.5, .7, kNotANumber}).rises, true);
  EXPECT_EQ(at({0, 0, 0}, {.5, .7, .8}).rises, true);
  EXPECT_TRUE(std::isnan(at({0, 0, 0}, {.5, .7, .8}).exponent)) << "step 0 has no logarithm";
  EXPECT_TRUE(std::isnan(at({7, 7, 7}, {.5, .7, .8}).exponent)) << "one step only";
  EXPECT_NEAR(at({100, 200, 400, 1000}, {.9, .95, .975, 1}).exponent, -1, 1e-12) << "1 - rho = 0 has no logarithm";
  EXPECT_TRUE(std::isnan(at({100, 200, 400}, {.9, .95, .975}, .03).exponent)) << "the last is below the resolution";
  EXPECT_THROW(at({1, 2}, {.5}), InputError);
}

TEST(ImpliedNormOfWords, IsTheOneOfTheSettings) {
  for (const TrainSettings& settings :
       {TrainSettings{}, TrainSettings{.optimizer = Optimizer::adam}, TrainSettings{.optimizer = Optimizer::muon},
        TrainSettings{.optimizer = Optimizer::mirror, .power = 3.5},
        TrainSettings{.optimizer = Optimizer::steepest, .norm = Norm::schatten(3)},
        TrainSettings{.param = Parametrization::KQ, .joint = true, .width = 3},
        TrainSettings{.param = Parametrization::KQ, .optimizer = Optimizer::adam}, TrainSettings{.entropy = 0.5},
        TrainSettings{.selector = Selector::dirichlet, .concentration = 3}, TrainSettings{.heads = 3},
        TrainSettings{.heads = 2, .shared_norm = true}, TrainSettings{.temperature = {2, 2}},
        TrainSettings{.temperature = {2, 0.5}}, TrainSettings{.batch = 1}, TrainSettings{.batch = 2},
        TrainSettings{.optimizer = Optimizer::gd, .batch = 1}}) {
    const auto expected = implied_norm(settings), found = implied_norm_of_words(words_of(settings));
    ASSERT_EQ(found.has_value(), expected.has_value()) << words_of(settings);
    if (!expected) continue;
    EXPECT_EQ(found->norm, expected->norm) << words_of(settings);
    EXPECT_EQ(found->proven, expected->proven) << words_of(settings);
  }
  for (const char* words : {"", "W", "W, ", "W, magic, step 0.1", "V, ngd, step 0.1", "W, mirror:1", "W,ngd"})
    EXPECT_FALSE(implied_norm_of_words(words)) << words;
}

TEST(ImpliedNormOfWords, IsNoneWhereBatchesAreMovedEquallyFar) {
  EXPECT_FALSE(implied_norm({.batch = 1}));
  EXPECT_FALSE(implied_norm({.batch = 2}));
  EXPECT_FALSE(implied_norm({.optimizer = Optimizer::adam, .batch = 1}));
  const std::optional<ImpliedNorm> gradient = implied_norm({.optimizer = Optimizer::gd, .batch = 1});
  EXPECT_EQ(gradient->norm, Norm::frobenius());
  EXPECT_FALSE(gradient->proven);
}

/// The mean over tasks of 1 − correlation with the SVM after 20,000 normalized steps.
double mean_distance(Index batch) {
  constexpr int kTasks = 3;
  double sum = 0;
  for (std::uint32_t instance = 0; instance < kTasks; ++instance) {
    const AttentionTask task = generate({.n = 20, .T = 2, .d = 10}, 3, instance).task;
    Threads threads(2);
    const TrainedRun run = train(task, {.steps = 20'000, .batch = batch, .init = Init::zero}, threads);
    const MarginSolution svm =
        test::proven(MarginProblem::attention(task, Selection::single(attention_map(task, run.W, threads).selected)));
    sum += 1 - correlation(run.W, svm.W);
  }
  return sum / kTasks;
}

TEST(ImpliedNormOfWords, SmallBatchesOfManyQueriesMissTheSvm) {
  EXPECT_LT(mean_distance(0), 1e-5);
  EXPECT_GT(mean_distance(2), 1e-2);
}

TEST(ImpliedNormOfWords, IsNotProvenForDrawsEntropyHeadsAndCooling) {
  EXPECT_TRUE(implied_norm({})->proven);
  EXPECT_FALSE(implied_norm({.entropy = 0.5})->proven);
  EXPECT_FALSE(implied_norm({.selector = Selector::gumbel})->proven);
  EXPECT_FALSE(implied_norm({.heads = 2})->proven);
  EXPECT_FALSE(implied_norm({.temperature = {2, 1}})->proven);
  EXPECT_TRUE(implied_norm({.temperature = {2, 2}})->proven);
  EXPECT_EQ(implied_norm({.selector = Selector::gumbel})->norm, Norm::frobenius());
}

TEST(CheckRun, FollowsTheImpliedNorm) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 4, .T = 5, .d = 6}, 3).task;
  TrainSettings training{.optimizer = Optimizer::steepest, .norm = Norm::schatten(3), .steps = 4000};
  training.record = RecordPlan::spread(training.steps);
  const TrainedRun run = train(task, training, threads);
  std::vector<ConstRows> record;
  std::vector<Index> steps;
  for (const Record& point : run.records) {
    record.emplace_back(point.W.data(), point.W.rows(), point.W.cols());
    steps.push_back(point.step);
  }
  const RunTrace trace{.W = run.W, .record = record, .steps = steps, .implied = implied_norm(training)};
  const Check check = check_run(task, trace, {}, threads);
  ASSERT_EQ(check.shares.size(), 6U) << "five norms and the implied one";
  EXPECT_EQ(check.shares.back().norm, Norm::schatten(3));
  EXPECT_EQ(check.implied->norm, Norm::schatten(3));
  for (const MarginShares& shares : check.shares) {
    ASSERT_EQ(shares.rho.size(), record.size());
    EXPECT_TRUE(std::isnan(shares.rho.front())) << "W = 0 has no margin";
    EXPECT_LE(shares.rho.back(), check.shares.back().rho.back())
        << shares.norm.name() << ": the implied norm is the closest";
  }
  EXPECT_EQ(check.shares.back().trend.rises, true);
  EXPECT_LT(check.shares.back().trend.exponent, 0);
  EXPECT_THROW(check_run(task, {.W = run.W, .record = record, .steps = std::span(steps).first(1)}, {}, threads),
               InputError);
}

TEST(CheckRun, HasNoShareWhereNothingSeparates) {
  Threads threads(1);
  // Tokens 0 and 1 have the same key, so that no W keeps one ahead of the other.
  const std::vector<double> keys{1, 1, 0}, values{1, 0, 0}, head{1};
  const AttentionTask task(
      {.tokens = Array::own(values, {1, 3, 1}), .keys = Array::own(keys, {1, 3, 1}), .head = Array::own(head, {1})});
  const RowMatrix W = RowMatrix::Ones(1, 1);
  const Check check = check_run(task, RunTrace{.W = W}, {}, threads);
  EXPECT_EQ(check.verdict, Verdict::infeasible);
  ASSERT_EQ(check.shares.size(), 5U);
  for (const MarginShares& shares : check.shares) {
    EXPECT_EQ(shares.status, MarginStatus::infeasible);
    EXPECT_TRUE(std::isnan(shares.rho.at(0)));
  }
}

TEST(CheckRun, CountsOnlyDroppedTokensOfSets) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 3, .T = 5, .d = 6, .head = HeadKind::hidden}, 4).task;
  const RowMatrix W = random_matrix(6, 6, 1);
  const Check check = check_run(task, RunTrace{.W = W}, {.threshold = .1}, threads);
  ASSERT_FALSE(check.selection.is_single());
  const MarginProblem problem = MarginProblem::attention(task, check.selection);
  const Eigen::VectorXd values = problem.values(W);
  double smallest = std::numeric_limits<double>::infinity();
  for (Index k = 0; k < problem.rows(); ++k) {
    if (!problem.equal(k)) smallest = std::min(smallest, values(k));
  }
  for (const MarginShares& shares : check.shares) {
    const MarginSolution solution = solve(problem, {.norm = shares.norm}, threads);
    ASSERT_EQ(shares.status, solution.status);
    if (solution.status != MarginStatus::optimal) continue;
    EXPECT_NEAR(shares.rho.at(0), smallest / shares.norm.of(W) * solution.objective, 1e-6) << shares.norm.name();
  }
}

TEST(CheckRun, LeavesOutNormsThatALimitEnds) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 1).task;
  const RowMatrix W = solve(MarginProblem::attention(task, optimal_tokens(task).selection), {}, threads).W;
  const ImpliedNorm max{.norm = Norm::largest()};
  // How often the solves before the norms call, and those of the implied norm: then stop.
  Index calls = 0, before = 0;
  const auto count = [&](const SolveProgress&) { return ++calls, false; };
  check_run(task, RunTrace{.W = W}, {.progress = count, .norms = {}}, threads);
  before = std::exchange(calls, 0);
  check_run(task, RunTrace{.W = W, .implied = max}, {.progress = count, .norms = {}}, threads);
  const Index most = std::exchange(calls, 0);
  ASSERT_GT(most, before);
  const Check check = check_run(task, RunTrace{.W = W, .implied = max},
                                {.progress = [&](const SolveProgress&) { return ++calls > most; }}, threads);
  EXPECT_FALSE(check.complete);
  EXPECT_EQ(check.verdict, Verdict::global);
  for (const MarginShares& shares : check.shares) {
    const bool known = shares.norm == Norm::largest() || shares.norm == Norm::frobenius() || shares.norm.is_nuclear();
    EXPECT_EQ(shares.status, known ? MarginStatus::optimal : MarginStatus::limit) << shares.norm.name();
    EXPECT_EQ(std::isnan(shares.rho.at(0)), !known) << shares.norm.name();
  }
}

}  // namespace
}  // namespace attsvm
