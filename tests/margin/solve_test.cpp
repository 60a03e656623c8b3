#include <cmath>
#include <numbers>

#include "attsvm/margin.h"
#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::expect_near;
using test::expect_refusal;
using test::first_kept;
using test::make_task;
using test::optimum;
using test::proven;
using test::with_tokens;

MarginSolution conflict(const MarginProblem& problem) {
  MarginSolution solution = proven(problem);
  EXPECT_EQ(solution.status, MarginStatus::infeasible) << solution.gap << " " << solution.violation;
  return solution;
}

bool mentions(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return line.find(words) != line.npos; });
}

TEST(MarginHard, ACopyOfTheSelectedTokenIsAConflict) {
  const AttentionTask task = make_task(2, 3, {1, 2, 3, 4, 1, 2, /**/ 5, 6, 7, 8, 9, 1}, {1, 0, 0, 1});
  const MarginProblem problem = first_kept(task);
  const MarginSolution solution = conflict(problem);
  EXPECT_EQ(solution.residual, 0);
  EXPECT_EQ(solution.dual, Eigen::Vector4d(0, 1, 0, 0));
  const auto words = describe_conflict(problem, solution.dual, 5);
  ASSERT_EQ(words.size(), 1U);
  EXPECT_TRUE(mentions(words, "query 0: keep token 0 over 2, but the two tokens are equal")) << words[0];
  optimum(first_kept(task, std::vector<Index>{0}));  // ≥ 0 against a copy of the kept token is always met
}

TEST(MarginHard, NearTies) {
  for (const double tie : {1e-3, 1e-6, 1e-8}) {
    const AttentionTask one = make_task(1, 2, {tie, 3, 0, 3}, {0, 2});  // δ = (tie, 0), ζ = (0, 2)
    expect_near(optimum(first_kept(one)).W, RowMatrix{{0, 0.5 / tie}, {0, 0}}, 1e-13);
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const AttentionTask drawn = generate({.n = 5, .T = 6, .d = 8}, seed).task;
    TaskArrays arrays = drawn.arrays();
    const auto old = f64_span(arrays.tokens);
    std::vector<double> tokens(old.begin(), old.end());
    for (std::size_t i = 0; i < 5; ++i) {  // token 1 of every sequence nearly equals token 0
      for (std::size_t j = 0; j < 8; ++j) tokens[i * 48 + 8 + j] = tokens[i * 48 + j] + 1e-6 * tokens[i * 48 + 16 + j];
    }
    arrays.tokens = Array::own(tokens, {5, 6, 8});
    const AttentionTask task(arrays);
    EXPECT_GT(optimum(first_kept(task)).objective, 1e5);
  }
}

TEST(MarginHard, AZeroQueryCannotSelect) {
  const AttentionTask task = make_task(2, 2, {1, 0, 0, 1, /**/ 2, 0, 0, 1}, {0, 0, 1, 1});
  const MarginProblem problem = first_kept(task);
  EXPECT_TRUE(mentions(describe_conflict(problem, conflict(problem).dual, 5), "its query vector is zero"));
  const MarginSolution relaxed = optimum(first_kept(task, std::vector<Index>{0}));
  EXPECT_NEAR(relaxed.objective, 1 / std::sqrt(10), 1e-15);
  optimum(MarginProblem::attention(task, Selection::sets({{0, 1}, {0}})));  // tokens with equal logits need no query
}

TEST(MarginHard, ParallelQueries) {
  const std::vector<double> twice{1, 0, 0, 1, /**/ 1, 0, 0, 1};
  const AttentionTask same = make_task(2, 2, twice, {1, 2, 3, 6});
  expect_near(optimum(first_kept(same)).W, RowMatrix{{0.1, 0.2}, {-0.1, -0.2}}, 1e-14);  // the shorter query decides
  const AttentionTask opposite = make_task(2, 2, twice, {1, 2, -3, -6});
  conflict(first_kept(opposite));
  const MarginSolution swapped =
      optimum(MarginProblem::attention(opposite, Selection::single(std::vector<Index>{0, 1})));
  expect_near(swapped.W, RowMatrix{{0.1, 0.2}, {-0.1, -0.2}}, 1e-14);
  const AttentionTask tilted = make_task(2, 2, twice, {1, 0, -1, 1e-5});  // not quite opposite
  EXPECT_GT(optimum(first_kept(tilted)).objective, 1e5);
}

TEST(MarginHard, AHundredRowsAnUnknown) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Recipe many{.n = 50, .T = 9, .d = 2, .dz = 2};
    Recipe separable = many;
    separable.law = Law::separable;
    const AttentionTask met = generate(separable, seed).task, unmet = generate(many, seed).task;
    const MarginProblem problem = MarginProblem::attention(met, *met.select());
    ASSERT_EQ(problem.rows(), 400);
    EXPECT_LE(optimum(problem).gap, 1e-8);
    conflict(first_kept(unmet));
  }
}

TEST(MarginHard, OneVisibleTokenAsksForNothing) {
  TaskArrays arrays = generate({.n = 3, .T = 4, .d = 5, .dz = 2}, 1).task.arrays();
  arrays.visible = Array::own(std::vector<Index>{1, 1, 1}, {3});
  const AttentionTask task(arrays);
  const MarginSolution solution = optimum(first_kept(task));
  EXPECT_EQ(solution.W, RowMatrix::Zero(5, 2));
  EXPECT_EQ(solution.objective, 0);
  EXPECT_EQ(solution.dual_objective, 0);
  EXPECT_EQ(solution.gap, 0);
  EXPECT_EQ(solution.dual.size(), 0);
  EXPECT_EQ(solution.support, 0);
  EXPECT_EQ(numerical_rank(solution.W), 0);
}

TEST(MarginHard, OneQueryIsOneVectorProblem) {  // W = w zᵀ/‖z‖², w the answer for prompt attention
  const AttentionTask cross = generate({.n = 1, .T = 6, .d = 7, .dz = 3}, 4).task;
  TaskArrays arrays = cross.arrays();
  arrays.queries = {};
  const AttentionTask prompt(arrays);
  const Eigen::VectorXd z = cross.query(0), w = optimum(first_kept(prompt)).W;
  const MarginSolution solution = optimum(first_kept(cross));
  expect_near(solution.W, w * z.transpose() / z.squaredNorm(), 1e-12);
  EXPECT_EQ(numerical_rank(solution.W), 1);
}

TEST(MarginHard, PromptIsCrossAttentionOfSizeOne) {
  const AttentionTask prompt =
      generate({.law = Law::separable, .n = 7, .T = 5, .d = 9, .pattern = QueryPattern::prompt}, 2).task;
  TaskArrays arrays = prompt.arrays();
  arrays.queries = Array::own(std::vector<double>(7, 1.0), {7, 1});
  const AttentionTask cross(arrays);
  EXPECT_EQ(optimum(MarginProblem::attention(prompt, *prompt.select())).W,
            optimum(MarginProblem::attention(cross, *prompt.select())).W);
}

TEST(MarginHard, AnyUnitOfLength) {
  for (const QueryPattern pattern : {QueryPattern::cross, QueryPattern::self, QueryPattern::prompt}) {
    const AttentionTask task = generate({.law = Law::separable, .n = 6, .T = 6, .d = 8, .pattern = pattern}, 3).task;
    const AttentionTask unmet = generate({.n = 20, .T = 6, .d = 2, .pattern = pattern}, 3).task;
    const Selection second = Selection::single(std::vector<Index>(20, 1));
    conflict(MarginProblem::attention(unmet, second));
    const MarginSolution unit = optimum(MarginProblem::attention(task, *task.select()));
    for (const double s : {1e8, 1e-8, 1e100, 1e-100}) {
      SCOPED_TRACE(s);
      SCOPED_TRACE(static_cast<int>(pattern));
      const AttentionTask scaled = with_tokens(task, [&](double x) { return s * x; });
      const MarginSolution solution = optimum(MarginProblem::attention(scaled, *task.select()));
      const double factor = pattern == QueryPattern::self ? s * s : s;
      expect_near(solution.W * factor, unit.W, 1e-9);
      EXPECT_NEAR(solution.objective * factor, unit.objective, 1e-11 * unit.objective);
      EXPECT_EQ(solution.support, unit.support);
      conflict(MarginProblem::attention(with_tokens(unmet, [&](double x) { return s * x; }), second));
    }
  }
}

TEST(MarginHard, TokensInAPlane) {
  const AttentionTask flat = generate({.law = Law::separable, .n = 8, .T = 5, .d = 2, .dz = 3}, 6).task;
  const Eigen::MatrixXd lift = test::orthonormal(Eigen::MatrixXd{{0, 1}, {2, 3}, {1, -1}, {4, 0}, {-2, 1}, {3, 3}});
  RowMatrix tokens(40, 6);
  for (Index i = 0; i < 8; ++i) tokens.middleRows(5 * i, 5) = flat.keys(i) * lift.transpose();
  TaskArrays arrays{.tokens = Array::own(tokens), .queries = flat.arrays().queries};
  arrays.tokens.shape = {8, 5, 6};
  const AttentionTask task(arrays);
  const MarginSolution low = optimum(MarginProblem::attention(flat, *flat.select()));
  const MarginSolution high = optimum(MarginProblem::attention(task, *flat.select()));
  EXPECT_NEAR(high.objective, low.objective, 1e-10 * low.objective);
  expect_near(high.W, lift * low.W, 1e-8);
}

TEST(MarginHard, NothingButEqualitiesOrRelaxedRows) {
  const AttentionTask task = generate({.n = 3, .T = 4, .d = 3}, 5).task;
  const auto expect_zero = [](const MarginProblem& problem) {
    const MarginSolution solution = optimum(problem);
    EXPECT_EQ(solution.W, RowMatrix::Zero(3, 3));
    EXPECT_EQ(solution.objective, 0);
    EXPECT_EQ(solution.gap, 0);
    EXPECT_EQ(solution.support, problem.rows());
  };
  const std::vector<Index> every{0, 1, 2, 3}, all{0, 1, 2};
  expect_zero(MarginProblem::attention(task, Selection::sets({every, every, every})));
  expect_zero(first_kept(task, all));
  expect_zero(MarginProblem::attention(task, Selection::sets({every, {0, 2}, {1}}), all));
}

TEST(MarginHard, NearlyInfeasible) {  // rows (1,ε) and (−1,ε): w = (0,1/ε), also rotated
  for (const double epsilon : {1e-2, 1e-4, 1e-6, 1e-8, 1e-10}) {
    SCOPED_TRACE(epsilon);
    const AttentionTask task = make_task(1, 3, {0, 0, -1, -epsilon, 1, -epsilon});
    const MarginSolution solution = optimum(first_kept(task));
    EXPECT_NEAR(solution.objective, 1 / epsilon, 1e-12 / epsilon);
    expect_near(solution.W, RowMatrix{{0}, {1 / epsilon}}, 1e-12);
  }
  for (const double epsilon : {1e-2, 1e-4, 1e-6}) {
    SCOPED_TRACE(epsilon);
    const double c = std::cos(1.0), s = std::sin(1.0);
    const AttentionTask task =
        make_task(1, 3, {0, 0, -c + epsilon * s, -s - epsilon * c, c + epsilon * s, s - epsilon * c});
    EXPECT_NEAR(optimum(first_kept(task)).objective, 1 / epsilon, 1e-15 / epsilon / epsilon + 1e-12 / epsilon);
  }
  conflict(first_kept(make_task(1, 3, {0, 0, -1, 0, 1, 0})));
  conflict(first_kept(make_task(1, 4, {0, 0, -1, 0, 0.5, std::numbers::sqrt3 / 2, 0.5, -std::numbers::sqrt3 / 2})));
}

TEST(MarginHard, EqualitiesThatDecideAMargin) {  // token 2 lies on the line through the kept tokens 0 and 1
  const AttentionTask task = make_task(1, 3, {0, 0, 1, 2, 2, 4}, {1, -1});
  conflict(MarginProblem::attention(task, Selection::sets({{0, 1}})));
  const AttentionTask off = make_task(1, 3, {0, 0, 1, 0, 2, 4}, {1, 0});
  expect_near(optimum(MarginProblem::attention(off, Selection::sets({{0, 1}}))).W, RowMatrix{{0, 0}, {-0.25, 0}},
              1e-15);
}

TEST(MarginHard, FinitePartWithDependentEqualities) {
  const AttentionTask task = make_task(1, 3, {0, 0, 1, 2, 2, 4}, {1, -1});
  const Selection all = Selection::sets({{0, 1, 2}});
  const auto consistent = MarginProblem::finite_part(task, all, RowMatrix{{0, -1, -2}});
  const MarginSolution solution = optimum(consistent);
  expect_near(solution.W, RowMatrix{{-0.1, 0.1}, {-0.2, 0.2}}, 1e-14);
  EXPECT_LE(solution.slack.cwiseAbs().maxCoeff(), 1e-14);
  const auto inconsistent = MarginProblem::finite_part(task, all, RowMatrix{{0, -1, -2.5}});
  const MarginSolution proof = conflict(inconsistent);
  EXPECT_LE(inconsistent.weigh(proof.dual).norm(), 1e-12 * proof.dual.cwiseAbs().sum());
  EXPECT_NEAR(proof.dual(0) * inconsistent.rhs(0) + proof.dual(1) * inconsistent.rhs(1), 1, 1e-12);
  const AttentionTask copies = make_task(1, 2, {1, 2, 1, 2});
  const auto uneven = MarginProblem::finite_part(copies, Selection::sets({{0, 1}}), RowMatrix{{-4, 0}});
  EXPECT_EQ(conflict(uneven).dual(0), -0.25);
}

TEST(MarginHard, ValueProblem) {
  const AttentionTask task({.tokens = Array::own(std::vector<double>{2, 0, 9, 9, 0, -4, 9, 9}, {2, 2, 2}),
                            .labels = Array::own(std::vector<double>{1, -1}, {2})});
  const Selection first = Selection::single(std::vector<Index>{0, 0});
  expect_near(optimum(MarginProblem::value(task, first)).W, RowMatrix{{0.5}, {0.25}}, 1e-15);
  const AttentionTask zero = make_task(1, 2, {0, 0, 1, 1});
  conflict(MarginProblem::value(zero, Selection::single(std::vector<Index>{0})));
  expect_refusal([&] { MarginProblem::value(task, Selection::sets({{0, 1}, {0}})); }, {"select[0]", "several"});
}

TEST(MarginPlanted, OptimaAreRecovered) {
  for (const Recipe& sizes :
       {Recipe{}, Recipe{.n = 1, .T = 2, .d = 1}, Recipe{.n = 30, .T = 5, .d = 4, .dz = 7},
        Recipe{.n = 3, .T = 9, .d = 12, .rank = 1}, Recipe{.n = 8, .shortest = 2, .pattern = QueryPattern::prompt},
        Recipe{.n = 20, .T = 12, .d = 3, .dz = 2}, Recipe{.n = 2, .T = 40, .d = 16}, Recipe{.n = 60, .T = 3, .d = 10},
        Recipe{.n = 100, .T = 10, .d = 12, .dz = 8}, Recipe{.n = 40, .T = 20, .d = 16, .rank = 3}}) {
    Recipe recipe = sizes;
    recipe.law = Law::planted;
    for (std::uint32_t instance = 0; instance < 6; ++instance) {
      SCOPED_TRACE(testing::Message() << "n " << sizes.n << " T " << sizes.T << " d " << sizes.d << " #" << instance);
      const Drawn drawn = generate(recipe, 17, instance);
      const AttentionTask& task = drawn.task;
      const ConstRows W(f64_span(drawn.extras.at("x_planted_W")).data(), task.key_size(), task.query_size());
      const double objective = f64_span(drawn.extras.at("x_planted_objective"))[0];
      const MarginSolution solution = optimum(MarginProblem::attention(task, *task.select()));
      EXPECT_NEAR(solution.objective, objective, 1e-12 * objective);
      expect_near(solution.W, W, 1e-9);
    }
  }
}

TEST(MarginPlanted, ConflictsAreProven) {
  for (const Recipe& sizes :
       {Recipe{}, Recipe{.n = 1}, Recipe{.n = 2, .T = 2, .d = 3}, Recipe{.n = 40, .T = 12, .d = 4},
        Recipe{.n = 5, .pattern = QueryPattern::prompt}, Recipe{.n = 30, .T = 6, .d = 20, .dz = 5},
        Recipe{.n = 4, .T = 6, .d = 3, .dz = 9, .shortest = 2}}) {
    Recipe recipe = sizes;
    recipe.law = Law::infeasible;
    for (std::uint32_t instance = 0; instance < 10; ++instance) {
      const Drawn drawn = generate(recipe, 19, instance);
      const MarginSolution solution = conflict(MarginProblem::attention(drawn.task, *drawn.task.select()));
      EXPECT_TRUE(std::isnan(solution.objective));
      EXPECT_NEAR(solution.dual.sum(), 1, 1e-12);
    }
  }
}

}  // namespace
}  // namespace attsvm
