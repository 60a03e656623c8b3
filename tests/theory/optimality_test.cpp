// Local optimality against its definition, equivalence, regularization paths.
#include <algorithm>
#include <cmath>

#include "support.h"
#include "theory/ball_minimizer.h"
#include "theory/selections.h"

namespace attsvm {
namespace {

AttentionTask random_task(Index n, Index T, Index d, std::uint64_t seed) {
  return generate({.n = n, .T = T, .d = d}, seed).task;
}

/// γ_it computed from the arrays.
double score(const AttentionTask& task, Index query, Index token) {
  return task.label(query) * task.head().v.dot(task.values(task.sequence(query)).row(token).transpose());
}

/// Local optimality by its definition: separable, and every token whose row is met with equality scores less.
bool locally_optimal_by_definition(const AttentionTask& task, const Selection& selection, Threads& threads) {
  const MarginProblem problem = MarginProblem::attention(task, selection);
  const SolveSettings settings;
  const MarginSolution solution = solve(problem, settings, threads);
  const Verification verdict =
      verify(task, stored(problem, solution, settings.tolerance), {.tolerance = settings.tolerance});
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  if (solution.status != MarginStatus::optimal) return false;
  for (Index i = 0; i < task.queries(); ++i) {
    const Index kept = selection.first(i);
    const auto X = task.keys(task.sequence(i));
    for (Index t = 0; t < task.visible(i); ++t) {
      const double value = (X.row(kept) - X.row(t)).dot(solution.W * task.query(i));
      if (t != kept && value <= 1 + 1e-6 && score(task, i, t) >= score(task, i, kept)) return false;
    }
  }
  return true;
}

TEST(LocalOptimality, EnumerationAgreesWithTheDefinition) {
  Threads threads(1);
  Index local = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const AttentionTask task = random_task(3, 4, 2 + static_cast<Index>(seed % 3), seed);
    const LocalOptima found = enumerate_local_optima(task, {.limit = 100}, threads);
    EXPECT_EQ(found.selections, 64);
    std::vector<Selection> expected;
    for (Index a = 0; a < 4; ++a) {
      for (Index b = 0; b < 4; ++b) {
        for (Index c = 0; c < 4; ++c) {
          const Selection selection = Selection::single(std::vector<Index>{a, b, c});
          if (locally_optimal_by_definition(task, selection, threads)) expected.push_back(selection);
        }
      }
    }
    EXPECT_EQ(found.locally_optimal, expected) << "seed " << seed;
    local += static_cast<Index>(expected.size());
  }
  EXPECT_GT(local, 6) << "the tasks have local optima beside the global one";
}

TEST(LocalOptimality, OptimalTokensAreAlwaysLocallyOptimalWhereSeparable) {
  Threads threads(1);
  MarginSolver solver(threads);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const AttentionTask task = random_task(6, 8, 10, seed);
    const SelectionReport report = assess_selection(task, optimal_tokens(task).selection, {}, solver);
    EXPECT_TRUE(report.optimal);
    EXPECT_EQ(report.locally_optimal, report.separable);
    for (const SupportToken& token : report.support) EXPECT_GT(token.score_gap, 0);
  }
}

TEST(LocalOptimality, TooManySelectionsAreRefused) {
  Threads threads(1);
  EXPECT_EQ(count_selections(random_task(3, 4, 2, 0), 64), 64);
  EXPECT_THROW(enumerate_local_optima(random_task(30, 8, 10, 0), {}, threads), InputError);
  EXPECT_THROW(enumerate_local_optima(random_task(3, 4, 2, 0), {.limit = 63}, threads), InputError);
}

TEST(LocalOptimality, TiedScoresAreNotAhead) {
  // Two tokens of the same value: whichever is selected, the other is a support token with the same score.
  const std::vector<double> keys{1, 0, 0, 1}, values{1, 1}, head{1};
  const AttentionTask task({.tokens = Array::view(values.data(), {1, 2, 1}),
                            .keys = Array::view(keys.data(), {1, 2, 2}),
                            .head = Array::view(head.data(), {1})});
  Threads threads(1);
  const Check check = check_selection(task, Selection::single(std::vector<Index>{1}), {}, threads);
  EXPECT_TRUE(check.separable);
  EXPECT_FALSE(check.report->locally_optimal);
  EXPECT_EQ(check.verdict, Verdict::global) << "a shared best score is best";
  ASSERT_EQ(check.optimal.ties.size(), 1U);
}

TEST(LocalOptimality, StoppedEnumerationsSayWhatTheyLookedAt) {
  Threads threads(1);
  const AttentionTask task = random_task(4, 8, 6, 1);
  const LocalOptima whole = enumerate_local_optima(task, {.limit = 5000}, threads);
  EXPECT_TRUE(whole.complete);
  EXPECT_EQ(whole.selections, 4096);
  const LocalOptima part = enumerate_local_optima(
      task, {.limit = 5000, .progress = [](const EnumerationProgress& now) { return now.done > 0; }}, threads);
  EXPECT_FALSE(part.complete);
  EXPECT_GT(part.selections, 0);
  EXPECT_LT(part.selections, 1000) << "it is asked often";
  EXPECT_LE(part.separable, part.selections);
}

/// Three tokens on a line, the one in the middle scores best: no W puts it ahead of both.
AttentionTask best_in_the_middle() {
  const std::vector<double> keys{0, 1, 2}, values{0, 1, 0}, head{1};
  return AttentionTask(
      {.tokens = Array::own(values, {1, 3, 1}), .keys = Array::own(keys, {1, 3, 1}), .head = Array::own(head, {1})});
}

TEST(CheckSelection, OptimalTokensThatNoWSeparatesAreSaidToBe) {
  Threads threads(1);
  const AttentionTask task = best_in_the_middle();
  const Check check = check_selection(task, optimal_tokens(task).selection, {}, threads);
  EXPECT_TRUE(check.optimal_selection);
  EXPECT_TRUE(check.decided);
  EXPECT_FALSE(check.separable);
  EXPECT_EQ(check.verdict, Verdict::infeasible);
  EXPECT_EQ(name_of(check.verdict), "infeasible");
  EXPECT_NE(check.reason.find("no W separates"), std::string::npos);
  const MarginProblem problem = MarginProblem::attention(task, check.selection);
  EXPECT_TRUE(verify(task, stored(problem, check.report->solution, 1e-8)).valid);
}

TEST(CheckSelection, OtherTokensThatNoWSeparatesAreInfeasibleToo) {
  Threads threads(1);
  const std::vector<double> keys{0, 1, 2}, values{1, 0, 0}, head{1};
  const AttentionTask task(
      {.tokens = Array::own(values, {1, 3, 1}), .keys = Array::own(keys, {1, 3, 1}), .head = Array::own(head, {1})});
  const Check one = check_selection(task, Selection::single(std::vector<Index>{1}), {}, threads);
  EXPECT_FALSE(one.optimal_selection);
  EXPECT_EQ(one.verdict, Verdict::infeasible);
  const std::vector<bool> mask{true, false, true};  // a set with equal logits, ahead of the token in the middle
  const Check set = check_selection(
      task, Selection::from_array(Array::own(mask, {1, 3}), task.visible(), task.longest(), "select"), {}, threads);
  EXPECT_EQ(set.verdict, Verdict::infeasible);
}

TEST(CheckSelection, StopsWhenToldAndSaysThatItIsNotDecided) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 100, .T = 30, .d = 40}, 1).task;
  const Selection best = optimal_tokens(task).selection;
  const Check check = check_selection(task, best, {.progress = [](const SolveProgress&) { return true; }}, threads);
  EXPECT_FALSE(check.decided);
  EXPECT_FALSE(check.separable);
  EXPECT_NE(check.reason.find("not decided"), std::string::npos);
  EXPECT_FALSE(check.nuclear) << "not even begun";
}

TEST(CheckRun, FollowsARunToItsSvm) {
  Threads threads(1);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const AttentionTask task = random_task(6, 8, 10, seed);
    TrainSettings settings{.steps = 4000};
    settings.record.every = 1000;
    const TrainedRun run = train(task, settings, threads);
    std::vector<ConstRows> record;
    for (const Record& point : run.records) record.emplace_back(point.W.data(), point.W.rows(), point.W.cols());
    const Check check = check_run(task, run.W, record, {}, threads);
    ASSERT_EQ(check.correlation_fro.size(), run.records.size());
    EXPECT_TRUE(std::isnan(check.correlation_fro.front())) << "W = 0 has no direction";
    EXPECT_NE(check.verdict, Verdict::neither) << check.reason;
    ASSERT_TRUE(check.nuclear);
    const MarginProblem problem = MarginProblem::attention(task, check.selection);
    EXPECT_TRUE(verify(task, stored(problem, *check.nuclear, 1e-8)).valid);
    EXPECT_TRUE(verify(task, stored(problem, check.report->solution, 1e-8)).valid);
    EXPECT_GT(check.correlation_fro.back(), 1 - 2e-3) << seed;
  }
}

TEST(BallMinimizer, MeetsFirstOrderConditionsOfAQuadratic) {
  // f(θ) = ½ Σ c_j (θ_j − m_j)²: inside if m is, else on the sphere with θ_j (c_j + μ) = c_j m_j.
  const Eigen::Vector3d c(1, 10, 100), inside(0.1, 0.2, -0.3), outside(3, -2, 1);
  for (const Eigen::Vector3d& centre : {inside, outside}) {
    const BallProblem problem{.gradient =
                                  [&](const Eigen::VectorXd& theta, ScaledGradient& out) {
                                    out.direction = 1e-8 * c.cwiseProduct(theta - centre);
                                    out.log_scale = std::log(1e8);
                                  },
                              .radius = 1,
                              .reach = 0.1,
                              .tolerance = 1e-10};
    const BallMinimum minimum = minimize_on_ball(problem, Eigen::Vector3d(0, 0, 1));
    EXPECT_LE(minimum.stationarity, 1e-10);
    EXPECT_EQ(minimum.inside, centre == inside);
    if (minimum.inside) {
      EXPECT_LE((minimum.theta - centre).norm(), 1e-9);
    } else {
      EXPECT_NEAR(minimum.theta.norm(), 1, 1e-12);
      const Eigen::Vector3d ratio = c.cwiseProduct(centre).cwiseQuotient(minimum.theta) - c;  // μ, three times
      EXPECT_LE(ratio.maxCoeff() - ratio.minCoeff(), 1e-6 * ratio.maxCoeff());
      EXPECT_GT(ratio.minCoeff(), 0);
    }
  }
}

struct PathCase {
  Parametrization param;
  const char* kind;
};

class Paths : public testing::TestWithParam<PathCase> {};

TEST_P(Paths, EndInTheSvmOfTheirSelection) {
  const PathCase& c = GetParam();
  Threads threads(1);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Recipe recipe{.n = 3, .T = 4, .d = 5};
    if (c.param == Parametrization::p) recipe = {.n = 2, .T = 3, .d = 6, .pattern = QueryPattern::prompt};
    const AttentionTask task = generate(recipe, seed).task;
    const auto points =
        regularization_path(task, {.param = c.param, .radii = {1, 10, 100, 1000, 5000}, .starts = 3}, threads).points;
    ASSERT_EQ(points.size(), 5U);
    for (std::size_t k = 0; k < points.size(); ++k) {
      EXPECT_LE(points[k].stationarity, 1e-8) << "radius " << points[k].radius;
      EXPECT_NEAR(points[k].norm, points[k].radius, 1e-9 * points[k].radius);
      if (k > 0) {
        EXPECT_LT(points[k].log_excess, points[k - 1].log_excess);
      }
    }
    EXPECT_GT(points.back().correlation, 1 - 1e-3);
    // If the optimal tokens are separable, no other selection has a lower loss at a large radius.
    std::vector<Index> best;
    const OptimalTokens optimal = optimal_tokens(task);
    for (Index i = 0; i < task.queries(); ++i) best.push_back(optimal.selection.first(i));
    EXPECT_EQ(points.back().selected, best);
  }
}

INSTANTIATE_TEST_SUITE_P(AllParametrizations, Paths,
                         testing::Values(PathCase{Parametrization::W, "W"}, PathCase{Parametrization::KQ, "KQ"},
                                         PathCase{Parametrization::p, "p"}),
                         [](const auto& test) { return test.param.kind; });

TEST(JointPath, ReachesBothSvmsAndRelaxesTheLooseInput) {
  Threads threads(1);
  for (const bool tight : {true, false}) {
    const AttentionTask task = generate({.law = Law::joint_training, .c = tight ? 1 : 1.5}, 0).task;
    const auto points =
        regularization_path(
            task, {.param = Parametrization::p, .joint = true, .radii = {1, 10, 100, 1000}, .starts = 4}, threads)
            .points;
    const PathPoint& last = points.back();
    EXPECT_EQ(last.relaxed, tight ? 0 : 1);
    EXPECT_LE(last.stationarity, 1e-8);
    EXPECT_GT(last.head_correlation, 1 - 1e-3);
    EXPECT_GT(last.correlation, 1 - 1e-3);
  }
}

TEST(Paths, RefuseSettingsThatMakeNoSense) {
  Threads threads(1);
  const AttentionTask task = random_task(3, 4, 5, 0);
  EXPECT_THROW(regularization_path(task, {.radii = {}}, threads), InputError);
  EXPECT_THROW(regularization_path(task, {.radii = {1, 1}}, threads), InputError);
  EXPECT_THROW(regularization_path(task, {.radii = {-1}}, threads), InputError);
  EXPECT_THROW(regularization_path(task, {.starts = 0}, threads), InputError);
  EXPECT_THROW(regularization_path(task, {.param = Parametrization::p}, threads), InputError);
}

}  // namespace
}  // namespace attsvm
