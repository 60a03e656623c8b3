#include <cmath>

#include "margin_support.h"

namespace attsvm {
namespace {

using test::expect_refusal;
using test::proven;

/// Solves with these penalties and verifies the answer; an optimum must be one to rounding.
MarginSolution solved(const MarginProblem& problem, std::vector<double> penalty, double tolerance = 1e-12) {
  Threads threads(2);
  const MarginSolution solution = solve(problem, {.soft = std::move(penalty), .tolerance = tolerance}, threads);
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap << " by " << solution.method;
  const Verification proof = verify(problem.task(), stored(problem, solution, tolerance), {.tolerance = tolerance});
  EXPECT_TRUE(proof.valid) << proof.reason;
  EXPECT_NEAR(proof.objective, solution.objective, tolerance * solution.objective);
  return solution;
}

/// A W draws the labels, and every fifth is wrong: no W keeps them all.
MarginProblem noisy(const Recipe& recipe, std::uint64_t seed) {
  const AttentionTask task = test::separable(recipe, seed);
  std::vector<Index> kept;
  for (Index i = 0; i < task.queries(); ++i)
    kept.push_back((task.select()->first(i) + (i % 5 == 0 ? 1 : 0)) % task.visible(i));
  return MarginProblem::attention(task, Selection::single(kept));
}

MarginProblem noisy(Index n, Index T, Index d, std::uint64_t seed) {
  return noisy({.n = n, .T = T, .d = d, .pattern = QueryPattern::prompt}, seed);
}

double largest_sum(const MarginProblem& problem, const MarginSolution& hard) {
  double largest = 0;
  for (const MarginGroup& group : problem.groups())
    largest = std::max(largest, hard.objective * hard.dual.segment(group.first_row, group.rows).sum());
  return largest;
}

TEST(SoftMargin, OneRowIsSolvedByHand) {
  // One row w ≥ 1 − ξ: w = min(C, 1), ξ = 1 − w.
  const MarginProblem problem = test::first_kept(test::make_task(1, 2, {1, 0}));
  for (const double C : {1e-6, 0.25, 0.5, 1.0, 3.0, 1e9, 1e300}) {
    const MarginSolution solution = solved(problem, {C});
    const double w = std::min(C, 1.0);
    EXPECT_NEAR(solution.W(0, 0), w, 1e-14);
    EXPECT_NEAR(solution.xi(0), 1 - w, 1e-14);
    EXPECT_NEAR(solution.objective, w * w / 2 + C * (1 - w), 1e-14 * std::max(1.0, C * (1 - w)));
    EXPECT_NEAR(solution.dual(0), w, 1e-14);
  }
}

TEST(SoftMargin, NoisyLabelsArePaidFor) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const MarginProblem problem = noisy(30, 5, 3, seed);
    ASSERT_EQ(proven(problem).status, MarginStatus::infeasible);
    double before = 0;
    for (const double C : {1e-3, 0.03, 1.0, 30.0, 1e3}) {
      const MarginSolution solution = solved(problem, {C}, C <= 1 ? 1e-12 : 1e-8);
      EXPECT_LT(solution.objective, 30 * C);              // W = 0 costs that
      EXPECT_GE(solution.W.norm(), before * (1 - 1e-9));  // more expensive slack, larger W
      before = solution.W.norm();
      EXPECT_GT(solution.xi.maxCoeff(), 0);
      for (const MarginGroup& group : problem.groups()) {
        const double sum = solution.dual.segment(group.first_row, group.rows).sum();
        EXPECT_LE(sum, C);
        if (solution.xi(group.query) > 1e-9) {  // complementary slackness
          EXPECT_NEAR(sum, C, 1e-9 * C);
        }
      }
    }
  }
}

TEST(SoftMargin, BeyondTheLargestMultiplierItIsTheHardMargin) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const AttentionTask task = generate({.n = 5, .T = 6, .d = 8}, seed).task;
    const MarginProblem problem = test::of_optimal_tokens(task);
    const MarginSolution hard = test::optimum(problem);
    const double C = largest_sum(problem, hard);
    for (const double factor : {1 + 1e-9, 2.0, 1e6, 1e200}) {
      const MarginSolution soft = solved(problem, {C * factor}, 1e-8);
      if (factor < 1e100) {
        EXPECT_EQ(soft.W, hard.W) << factor;
      } else {
        test::expect_near(soft.W, hard.W, 1e-14);  // a row that rounding leaves short would cost too much
      }
      EXPECT_NEAR(soft.objective, hard.objective * hard.objective / 2, 1e-9 * soft.objective);
    }
    const MarginSolution less = solved(problem, {0.9 * C});
    EXPECT_GT(less.xi.maxCoeff(), 0);
    EXPECT_LT(less.objective, hard.objective * hard.objective / 2);
  }
}

TEST(SoftMargin, PenaltiesMayDifferByQuery) {
  const MarginProblem problem = noisy(12, 4, 3, 3);
  const MarginSolution same = solved(problem, {0.5}), each = solved(problem, std::vector<double>(12, 0.5));
  EXPECT_EQ(same.W, each.W);
  std::vector<double> penalty(12, 0.5);
  Index worst = 0;
  same.xi.maxCoeff(&worst);
  penalty[static_cast<std::size_t>(worst)] = 500;
  EXPECT_LT(solved(problem, penalty).xi(worst), same.xi(worst));
}

TEST(SoftMargin, EquationsAndRelaxedRowsStayHard) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const AttentionTask task = generate({.n = 8, .T = 5, .d = 6}, seed).task;
    std::vector<std::vector<Index>> kept;
    for (Index i = 0; i < 8; ++i) kept.push_back(i % 3 == 0 ? std::vector<Index>{1, 3} : std::vector<Index>{i % 5});
    const std::vector<Index> relax{2, 6};
    const MarginProblem problem = MarginProblem::attention(task, Selection::sets(kept), relax);
    for (const double C : {0.01, 1.0}) {
      const MarginSolution solution = solved(problem, {C}, 1e-9);
      EXPECT_LT(solution.violation, 1e-12);
      for (const Index i : relax) EXPECT_EQ(solution.xi(i), 0);
    }
  }
}

TEST(SoftMargin, TheValueProblemIsAnOrdinarySvm) {
  const AttentionTask task = generate({.n = 40, .T = 3, .d = 5}, 2).task;
  const MarginProblem problem = MarginProblem::value(task, Selection::single(std::vector<Index>(40, 0)));
  EXPECT_GT(solved(problem, {0.3}).xi.maxCoeff(), 0);
}

TEST(SoftMargin, EqualTokensAndZeroQueriesAreAlwaysMissed) {
  const AttentionTask task = test::make_task(2, 2, {1, 2, 1, 2, 3, 0, 0, 1}, {1, 1, 1, -1});
  const MarginSolution solution = solved(test::first_kept(task), {2});
  EXPECT_EQ(solution.xi(0), 1);
  EXPECT_EQ(solution.dual(0), 2);
  EXPECT_EQ(solved(test::first_kept(test::make_task(1, 2, {1, 0}, {0})), {2}).objective, 2);
}

TEST(SoftMargin, ManyRowsJoinOnDemand) {
  const MarginProblem problem = noisy({.n = 150, .T = 40, .d = 5, .dz = 4}, 4);
  ASSERT_GT(problem.rows(), 1500);
  const MarginSolution solution = solved(problem, {0.02}, 1e-8);
  EXPECT_GT(solution.xi.maxCoeff(), 0);
  const AttentionTask easy = test::separable({.n = 60, .T = 40, .d = 20, .rank = 2});
  const MarginSolution hard = proven(test::selected(easy)), soft = solved(test::selected(easy), {1e4}, 1e-8);
  test::expect_near(soft.W, hard.W, 1e-3);
  EXPECT_NEAR(soft.objective, hard.objective * hard.objective / 2, 3e-8 * soft.objective);
  EXPECT_EQ(solved(problem, {0.02}, 1e-8).W, solution.W);
}

TEST(SoftMargin, ScalingTokensScalesTheAnswer) {
  const MarginProblem problem = noisy({.n = 30, .T = 5, .d = 3, .dz = 2}, 5);
  const MarginSolution one = solved(problem, {0.5});
  for (const double scale : {1e-3, 1e4}) {
    const AttentionTask other_task = test::scaled(problem.task(), scale, 1);
    const MarginSolution other =
        solved(MarginProblem::attention(other_task, problem.selection()), {0.5 / (scale * scale)}, 1e-10);
    test::expect_near(other.W * scale, one.W, 1e-9);
  }
}

TEST(SoftMargin, EquationsMayLeaveNothingButZero) {
  // Two kept tokens and one dropped on a line: W must be 0, and the query pays in full.
  const AttentionTask task = test::make_task(1, 3, {0, 3, 7}, {}, {{0, 1}});
  for (const double C : {1e-6, 1.0, 1e6}) {
    const MarginSolution solution = solved(test::selected(task), {C});
    EXPECT_EQ(solution.W(0, 0), 0);
    EXPECT_EQ(solution.objective, C);
  }
}

TEST(SoftMargin, PenaltiesMayBeFarFromTheMultipliers) {
  const MarginProblem problem = noisy(30, 5, 3, 1);
  for (const double C : {1e-30, 1e-6, 1e6}) solved(problem, {C}, 1e-8);
}

TEST(SoftMargin, MultipliersThatDoubleCannotHoldAreRefused) {
  Threads threads(1);
  const MarginProblem huge = test::first_kept(test::make_task(1, 2, {1e160, 0}));
  expect_refusal([&] { solve(huge, {.soft = {1}}, threads); }, {"smallest row >= 1 has size 1e+160", "rescale"});
  solved(test::first_kept(test::make_task(1, 2, {1e-160, 0})), {1});
}

TEST(SoftMargin, VerifyRefusesWhatIsNotProven) {
  const MarginProblem problem = noisy(10, 4, 3, 1);
  const StoredSolution answer = stored(problem, solved(problem, {0.7}), 1e-12);
  const auto refused = [&](const char* words, auto change) {
    StoredSolution other = answer;
    change(other);
    const Verification verdict = verify(problem.task(), other);
    EXPECT_FALSE(verdict.valid) << words;
    EXPECT_NE(verdict.reason.find(words), std::string::npos) << verdict.reason;
  };
  refused("add up to", [](StoredSolution& s) {
    for (double& lambda : s.dual) lambda *= 1.01;
  });
  refused("objective", [](StoredSolution& s) { s.penalty.assign(10, 0.8); });
  refused("objective", [](StoredSolution& s) { s.objective *= 1 - 1e-8; });
  refused("dual_objective", [](StoredSolution& s) { s.dual_objective *= 1 - 1e-8; });
  refused("xi[", [](StoredSolution& s) { s.xi[3] += 1e-6; });
  refused("xi[2]", [](StoredSolution& s) { s.xi[2] = -1; });
  refused("penalty[1]", [](StoredSolution& s) { s.penalty[1] = 0; });
  refused("one entry per query", [](StoredSolution& s) { s.penalty.pop_back(); });
  refused("one entry per query", [](StoredSolution& s) { s.xi.clear(); });
  refused("Frobenius", [](StoredSolution& s) { s.norm = "lp:3"; });
  refused("cannot be infeasible", [](StoredSolution& s) { s.status = "infeasible"; });
  refused("negative", [](StoredSolution& s) { s.dual[0] = -1e-3; });
  refused("violates", [](StoredSolution& s) { s.penalty.clear(), s.xi.clear(); });  // no soft margin at all
  refused("slack", [](StoredSolution& s) { s.W *= 1.01; });
  refused("gap", [&](StoredSolution& s) {  // true numbers, but no optimum
    Threads threads(1);
    const MarginSolution early = solve(problem, {.soft = {0.7}, .iteration_limit = 8}, threads);
    EXPECT_NE(early.status, MarginStatus::optimal);
    s = stored(problem, early, 1e-12);
    EXPECT_TRUE(verify(problem.task(), s).valid) << verify(problem.task(), s).reason;
    s.status = "optimal";
  });
}

TEST(SoftMargin, FilesHoldIt) {
  const test::Scratch scratch;
  Threads threads(1);
  const MarginProblem problem = noisy(10, 4, 3, 2);
  const StoredSolution answer = stored(problem, solved(problem, {0.7}), 1e-12);
  save_solution(scratch.file("s.npz"), answer, false);
  const StoredSolution again = load_solution(scratch.file("s.npz"), threads);
  EXPECT_EQ(again.xi, answer.xi);
  EXPECT_EQ(again.penalty, answer.penalty);
  EXPECT_TRUE(verify(problem.task(), again).valid);
  NamedArrays arrays = solution_arrays(answer);
  std::erase_if(arrays, [](const auto& one) { return one.first == "xi"; });
  expect_refusal([&] { solution_from(arrays); }, {"xi", "no such array"});
  std::erase_if(arrays, [](const auto& one) { return one.first != "W" && one.first != "penalty"; });
  expect_refusal([&] { solution_from(arrays); }, {"penalty", "W alone"});
}

TEST(SoftMargin, SettingsAreChecked) {
  const MarginProblem problem = noisy(4, 3, 2, 1);
  Threads threads(1);
  const auto refused = [&](const SolveSettings& settings, const char* words) {
    expect_refusal([&] { solve(problem, settings, threads); }, {words});
  };
  refused({.soft = {0}}, "soft = 0");
  refused({.soft = {-1}}, "soft = -1");
  refused({.soft = {INFINITY}}, "soft = inf");
  refused({.soft = {std::nan("")}}, "soft = nan");
  refused({.soft = {1, 2}}, "soft has 2 penalties");
  refused({.norm = Norm::nuclear(), .soft = {1}}, "Frobenius norm only");
}

}  // namespace
}  // namespace attsvm
