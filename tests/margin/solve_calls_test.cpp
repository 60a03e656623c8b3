#include <cmath>

#include "attsvm/margin.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::expect_near;
using test::expect_refusal;
using test::first_kept;
using test::make_task;
using test::of_optimal_tokens;
using test::optimum;
using test::proven;
using test::selected;

TEST(MarginSolve, WarmStart) {
  const AttentionTask task = generate({.law = Law::separable, .n = 20, .T = 8, .d = 6}, 8).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  const MarginSolution cold = optimum(problem);
  EXPECT_FALSE(cold.warm_started);
  const MarginSolution warm = proven(problem, {}, &cold);
  EXPECT_TRUE(warm.warm_started);
  EXPECT_EQ(warm.status, MarginStatus::optimal);
  EXPECT_LE(warm.iterations, cold.iterations);
  expect_near(warm.W, cold.W, 1e-10);
  MarginSolution misleading = cold;  // starting from all rows, or from wrong ones, must not change the answer
  misleading.dual.setOnes();
  expect_near(proven(problem, {}, &misleading).W, cold.W, 1e-10);
  misleading.dual = (cold.dual.array() == 0).cast<double>();
  expect_near(proven(problem, {}, &misleading).W, cold.W, 1e-10);
  const AttentionTask smaller = generate({.law = Law::separable, .n = 19, .T = 8, .d = 6}, 8).task;
  MarginSolution refused = optimum(MarginProblem::attention(smaller, *smaller.select()));
  EXPECT_FALSE(proven(problem, {}, &refused).warm_started);
  refused = cold;
  refused.status = MarginStatus::infeasible;
  EXPECT_FALSE(proven(problem, {}, &refused).warm_started);
}

TEST(MarginSolve, LimitsAreHonest) {
  Threads threads(1);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const AttentionTask task = generate({.law = Law::separable, .n = 20, .T = 8, .d = 6}, seed).task;
    const std::vector<Index> relax{3, 4};
    for (const MarginProblem& problem :
         {MarginProblem::attention(task, *task.select()), MarginProblem::attention(task, *task.select(), relax)}) {
      const double best = optimum(problem).objective;
      int calls = 0;
      for (const SolveSettings& settings :
           {SolveSettings{.time_limit = 1e-9}, SolveSettings{.iteration_limit = 1}, SolveSettings{.iteration_limit = 2},
            SolveSettings{.progress = [&](const SolveProgress&) { return ++calls == 1; }}}) {
        const MarginSolution solution = solve(problem, settings, threads);
        EXPECT_EQ(solution.status, MarginStatus::limit);
        EXPECT_LE(solution.dual_objective, best * (1 + 1e-9)) << "a bound is a bound";
        const Verification verdict =
            verify(task, stored(problem, solution, settings.tolerance), {.tolerance = settings.tolerance});
        EXPECT_NEAR(verdict.violation, solution.violation, 1e-9 * std::max(1.0, solution.violation));
        EXPECT_EQ(verdict.valid, solution.violation <= 1e-9) << verdict.reason;
        EXPECT_TRUE(!verdict.valid || solution.objective >= best * (1 - 1e-9));
      }
      EXPECT_GE(calls, 1);
    }
  }
}

TEST(MarginSolve, BadSettingsAreRefused) {
  Threads threads(1);
  const AttentionTask task = make_task(1, 2, {1, 2, 3, 4});
  const MarginProblem problem = first_kept(task);
  const auto refuse_with = [&](const SolveSettings& settings, const std::string& word) {
    expect_refusal([&] { solve(problem, settings, threads); }, {word});
    expect_refusal([&] { solve_many(std::span(&problem, 1), settings, threads); }, {word});
  };
  const double nan = std::nan("");
  for (const double tolerance : {0.0, -1.0, nan}) refuse_with({.tolerance = tolerance}, "tolerance");
  for (const double limit : {-1.0, nan}) refuse_with({.time_limit = limit}, "time_limit");
  refuse_with({.iteration_limit = -1}, "iteration_limit");
  expect_refusal([&] { first_kept(task, std::vector<Index>{1}); }, {"relax", "1"});
  expect_refusal([&] { first_kept(task, std::vector<Index>{-1}); }, {"relax", "-1"});
  expect_refusal([&] { MarginProblem::attention(task, Selection::single(std::vector<Index>{0, 0})); }, {"2", "1"});
  expect_refusal([&] { MarginProblem::finite_part(task, Selection::single(std::vector<Index>{0}), RowMatrix(1, 3)); },
                 {"log_attention", "1 by 3"});
}

TEST(MarginSolve, AProblemKeepsItsTask) {
  const auto problem = [] {
    const AttentionTask task = generate({.law = Law::separable}, 1).task;
    return MarginProblem::attention(task, *task.select());
  }();
  const AttentionTask same = generate({.law = Law::separable}, 1).task;
  EXPECT_EQ(optimum(problem).W, optimum(MarginProblem::attention(same, *same.select())).W);
}

TEST(MarginSolve, AMethodThatTakesNoWarmStartSaysSo) {
  Threads threads(1);
  const AttentionTask task = generate({.law = Law::separable, .n = 100, .T = 20, .d = 4}, 3).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  const MarginSolution cold = optimum(problem), warm = proven(problem, {}, &cold);
  EXPECT_EQ(warm.method, "interior point");
  EXPECT_FALSE(warm.warm_started);
  const MarginSolution nuclear = proven(problem, {.norm = Norm::nuclear()}, &cold);
  EXPECT_FALSE(nuclear.warm_started) << nuclear.method;
}

TEST(MarginSolve, AnAnswerMayStartTheNextSolve) {
  Threads threads(1);
  const AttentionTask task = generate({.law = Law::separable, .n = 20, .T = 8, .d = 6}, 8).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  for (const Norm& norm : {Norm::frobenius(), Norm::nuclear()}) {
    MarginSolver solver(threads);
    const MarginSolution cold = solve(problem, {.norm = norm}, threads);
    const MarginSolution warm = solve(problem, {.norm = norm}, threads, &cold);
    const MarginSolution& own = solver.solve(problem, {.norm = norm});
    const MarginSolution& again = solver.solve(problem, {.norm = norm}, &own);
    EXPECT_TRUE(again.warm_started);
    EXPECT_EQ(again.W, warm.W);
    EXPECT_EQ(again.dual, warm.dual);
    EXPECT_EQ(again.iterations, warm.iterations);
    EXPECT_TRUE(verify(task, stored(problem, again, 1e-8)).valid);
  }
}

TEST(MarginSolve, AStoppedWarmStartIsAnAnswer) {
  Threads threads(1);
  const AttentionTask first = generate({.n = 40, .T = 24, .d = 12}, 1).task;
  const AttentionTask second = generate({.n = 40, .T = 24, .d = 12}, 2).task;
  const SolveSettings nuclear{.norm = Norm::nuclear()}, stopped{.norm = Norm::nuclear(), .time_limit = 1e-9};
  const MarginSolution warm = solve(of_optimal_tokens(first), nuclear, threads);
  const MarginProblem problem = of_optimal_tokens(second);
  ASSERT_EQ(warm.dual.size(), problem.rows());
  MarginSolver used(threads);
  used.solve(first_kept(make_task(1, 2, {1, 2, 3, 4})), nuclear);  // leaves the answer of another problem behind
  for (const MarginSolution& answer : {solve(problem, stopped, threads, &warm), used.solve(problem, stopped, &warm)}) {
    EXPECT_EQ(answer.status, MarginStatus::limit);
    EXPECT_EQ(answer.dual.size(), problem.rows());
    EXPECT_EQ(answer.W.rows(), problem.d());
  }
  MarginSolution misfit = warm;
  misfit.K = RowMatrix::Ones(3, 2);
  EXPECT_FALSE(solve(problem, stopped, threads, &misfit).warm_started);
}

TEST(MarginSolve, ProgressCountsOverAllMethods) {
  const AttentionTask task = generate({.law = Law::separable, .n = 100, .T = 20, .d = 32}, 1).task;
  for (const Norm& norm : {Norm::frobenius(), Norm::nuclear(), Norm::entrywise(3)}) {
    const AttentionTask small = generate({.law = Law::separable, .n = 6, .T = 8, .d = 10}, 1).task;
    for (const AttentionTask& one : {small, task}) {
      if (norm.is_strictly_convex() && !norm.is_frobenius() && one.queries() > 6) continue;
      Threads threads(1);
      Index asked = 0;
      double seconds = 0;
      const auto watch = [&](const SolveProgress& now) {
        EXPECT_EQ(now.iteration, asked++);
        EXPECT_GE(now.seconds, seconds);
        seconds = now.seconds;
        return false;
      };
      solve(selected(one), {.norm = norm, .progress = watch}, threads);
      EXPECT_GT(seconds, 0) << norm.name();
    }
  }
}

TEST(MarginSolve, MemoryIsUsedAgain) {
  Threads threads(1);
  MarginSolver solver(threads);
  const AttentionTask task = generate({.law = Law::separable}, 1).task;
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  const MarginSolution& solution = solver.solve(problem, {});
  const MarginSolution first = solution;
  const double *W = solution.W.data(), *dual = solution.dual.data(), *slack = solution.slack.data();
  EXPECT_EQ(&solver.solve(problem, {}), &solution);
  EXPECT_EQ(solution.W.data(), W);
  EXPECT_EQ(solution.dual.data(), dual);
  EXPECT_EQ(solution.slack.data(), slack);
  EXPECT_EQ(solution.W, first.W);
  EXPECT_EQ(solution.dual, first.dual);
}

TEST(MarginSolve, NothingIsLeftOfTheProblemBefore) {
  Threads threads(1);
  MarginSolver used(threads);
  const std::vector<std::array<Index, 3>> sizes{{6, 8, 10},  {6, 8, 10}, {6, 8, 7},
                                                {15, 5, 20}, {6, 8, 10}, {60, 30, 8}};
  for (const Norm& norm : {Norm::nuclear(), Norm::frobenius(), Norm::entrywise(3)}) {
    for (std::uint32_t k = 0; k < 30; ++k) {
      const auto& [n, T, d] = sizes[k % sizes.size()];
      if (norm.is_strictly_convex() && !norm.is_frobenius() && n > 6) continue;
      SCOPED_TRACE(norm.name() + ", problem " + std::to_string(k));
      const AttentionTask task = generate({.law = Law::separable, .n = n, .T = T, .d = d}, 3, k / 12).task;
      const MarginProblem problem = MarginProblem::attention(task, *task.select());
      const MarginSolution& after = used.solve(problem, {.norm = norm});
      const MarginSolution alone = solve(problem, {.norm = norm}, threads);
      ASSERT_EQ(after.W, alone.W);
      ASSERT_EQ(after.dual, alone.dual);
      ASSERT_EQ(after.iterations, alone.iterations);
    }
  }
}

}  // namespace
}  // namespace attsvm
