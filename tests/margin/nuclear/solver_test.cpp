// Solves under the nuclear norm, and under entrywise norms where both have the same hard cases.
#include "margin/nuclear/solver.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "margin_support.h"

namespace attsvm {
namespace {

using test::first_kept;
using test::make_task;
using test::of_optimal_tokens;
using test::proven;

MarginSolution optimum(const MarginProblem& problem, const Norm& norm) {
  MarginSolution solution = proven(problem, {.norm = norm});
  EXPECT_EQ(solution.status, MarginStatus::optimal) << norm.name() << " " << solution.gap;
  EXPECT_EQ(solution.norm, norm);
  if (norm.is_nuclear()) {
    const double size = solution.objective;
    EXPECT_LE((solution.K * solution.Q.transpose() - solution.W).norm(), 1e-12 * size);
    EXPECT_LE((solution.K.transpose() * solution.K - solution.Q.transpose() * solution.Q).norm(), 1e-11 * size);
    EXPECT_LE(solution.W.norm(), size * (1 + 1e-12));
    EXPECT_LE(size, std::sqrt(static_cast<double>(solution.K.cols())) * solution.W.norm() * (1 + 1e-12));
  }
  return solution;
}

TEST(NuclearPlanted, OptimaAndRanksAreRecovered) {
  for (const Index rank : {1, 2, 3}) {
    for (const auto& [n, T, d] : {std::array<Index, 3>{6, 8, 10}, {12, 6, 8}, {4, 12, 16}, {30, 5, 6}}) {
      SCOPED_TRACE(fmt::format("rank {}, ({},{},{})", rank, n, T, d));
      const Drawn drawn =
          generate({.law = Law::planted, .n = n, .T = T, .d = d, .rank = rank, .norm = PlantedNorm::nuclear}, 5);
      const MarginProblem problem = MarginProblem::attention(drawn.task, *drawn.task.select());
      const MarginSolution solution = optimum(problem, Norm::nuclear());
      const double planted = f64_span(drawn.extras.at("x_planted_objective"))[0];
      EXPECT_NEAR(solution.objective, planted, 1e-9 * planted);
      if (solution.rank.certified) {
        EXPECT_EQ(solution.rank.rank, rank);
        const ConstRows W(f64_span(drawn.extras.at("x_planted_W")).data(), d, problem.dz());
        EXPECT_LE((solution.W - W).norm(), 1e-7 * planted);
      } else {
        EXPECT_FALSE(solution.rank.words.empty());
      }
    }
  }
}

TEST(NuclearHard, RepeatedSingularValues) {  // four queries, each with a row along its own axis: W = I
  const Index n = 4;
  std::vector<double> tokens, queries;
  for (Index i = 0; i < n; ++i) {
    for (const double sign : {0.5, -0.5})
      for (Index j = 0; j < n; ++j) tokens.push_back(i == j ? sign : 0);
    for (Index j = 0; j < n; ++j) queries.push_back(i == j ? 1 : 0);
  }
  const AttentionTask task = make_task(n, 2, tokens, queries);
  const MarginSolution solution = optimum(first_kept(task), Norm::nuclear());
  EXPECT_NEAR(solution.objective, 4, 1e-12);
}

TEST(NuclearHard, ManyMoreRowsThanUnknowns) {
  for (const Index d : {4, 8}) {
    const AttentionTask task = test::separable({.n = 400, .T = 20, .d = d});
    const MarginSolution solution = optimum(test::selected(task), Norm::nuclear());
    EXPECT_LE(solution.gap, 1e-11);
    EXPECT_TRUE(solution.rank.certified) << solution.rank.words;
  }
}

TEST(NuclearHard, TheOptimumNeedNotBeUnique) {
  // W₀₀ ≥ 1 and W₁₁ ≥ 1 alone: any [1 c; c 1] has nuclear norm 2.
  const AttentionTask task = make_task(2, 2, {1, 0, 0, 0, 0, 1, 0, 0}, {1, 0, 0, 1});
  const MarginSolution solution = optimum(first_kept(task), Norm::nuclear());
  EXPECT_NEAR(solution.objective, 2, 1e-9);
  EXPECT_FALSE(solution.rank.certified);
  EXPECT_FALSE(solution.rank.words.empty());
}

TEST(NuclearHard, EveryShapeAndUnit) {
  for (const auto& [n, T, d, dz] :
       {std::array<Index, 4>{3, 4, 5, 40}, {40, 4, 6, 3}, {5, 5, 30, 2}, {1, 6, 8, 8}, {8, 3, 2, 4}, {25, 3, 5, 5}}) {
    for (const double unit : {1e-8, 1.0, 1e8}) {
      SCOPED_TRACE(fmt::format("({},{},{},{}) in units of {}", n, T, d, dz, unit));
      const AttentionTask task = test::scaled(test::separable({.n = n, .T = T, .d = d, .dz = dz}, 3), unit, 1);
      const MarginProblem problem = MarginProblem::attention(task, *task.select());
      const MarginSolution nuclear = optimum(problem, Norm::nuclear()), frobenius = optimum(problem, Norm::frobenius());
      EXPECT_LE(nuclear.gap, 1e-9);
      EXPECT_GE(nuclear.objective, frobenius.objective * (1 - 1e-9));
      for (const double p : {1.3, 2.0, 4.0}) {
        const MarginSolution entrywise = optimum(problem, Norm::entrywise(p));
        EXPECT_LE(entrywise.gap, 1e-9);
        if (p == 2) {
          EXPECT_NEAR(entrywise.objective, frobenius.objective, 1e-9 * frobenius.objective);
          EXPECT_LE((entrywise.W - frobenius.W).norm(), 1e-4 * frobenius.objective);
        }
      }
    }
  }
}

TEST(NuclearHard, NothingAsked) {
  const AttentionTask task = make_task(2, 1, {1, 2, 3, 4}, {1, 0, 0, 1});
  for (const char* norm : {"nuc", "lp:3"}) {
    const MarginSolution solution = optimum(first_kept(task), Norm::parse(norm));
    EXPECT_EQ(solution.objective, 0);
    EXPECT_EQ(solution.K.cols(), 0);
    EXPECT_EQ(solution.K.rows(), norm[0] == 'n' ? 2 : 0);
  }
}

TEST(NuclearHard, RelaxedCausalValueAndConflicts) {
  const AttentionTask causal =
      generate({.law = Law::random, .n = 2, .T = 6, .d = 12, .pattern = QueryPattern::causal}, 2).task;
  const AttentionTask cross = generate({.n = 6, .T = 5, .d = 8}, 4).task;
  const std::vector<Index> relax{0, 3};
  for (const char* name : {"nuc", "lp:1.5"}) {
    const Norm norm = Norm::parse(name);
    optimum(of_optimal_tokens(causal), norm);
    optimum(MarginProblem::attention(cross, optimal_tokens(cross).selection, relax), norm);
    const MarginSolution value = proven(MarginProblem::value(cross, optimal_tokens(cross).selection), {.norm = norm});
    EXPECT_TRUE(is_settled(value.status));
    const Drawn impossible = generate({.law = Law::infeasible, .n = 5, .T = 4, .d = 6}, 1);
    const MarginSolution proof =
        proven(MarginProblem::attention(impossible.task, *impossible.task.select()), {.norm = norm});
    EXPECT_EQ(proof.status, MarginStatus::infeasible);
  }
}

TEST(NuclearHard, EquationsThatNearlyContradictAMargin) {  // ‖W‖ ‖δ‖ ‖ζ‖ is near 2e5
  const std::vector<double> queries{-0.23, -0.52, -0.14, 0.38};
  std::mt19937 engine(3);
  std::normal_distribution<double> normal;
  for (const double apart : {1e-2, 1e-4, 1e-5}) {
    std::vector<double> tokens(24);
    for (double& x : tokens) x = normal(engine);
    for (std::size_t i = 0; i < 2; ++i) {  // the dropped token is nearly on the line through the two that are kept
      for (std::size_t j = 0; j < 4; ++j) {
        const double *first = &tokens[12 * i], *second = first + 4;
        tokens[12 * i + 8 + j] = first[j] + 0.1 * (second[j] - first[j]) + apart * normal(engine);
      }
    }
    const AttentionTask task({.tokens = Array::own(tokens, {2, 3, 4}), .queries = Array::own(queries, {2, 2})});
    const MarginProblem problem = MarginProblem::attention(task, Selection::sets({{0, 1}, {0, 1}}));
    optimum(problem, Norm::nuclear());
  }
}

/// Causal attention: one query per token; it selects the argmax of the logits under a W of low rank.
AttentionTask causal(Index n, Index T, Index d, Index rank, std::vector<Index>& selected) {
  std::mt19937 engine(5);
  std::normal_distribution<double> normal;
  const auto draw = [&](Index) { return normal(engine); };
  const RowMatrix W = RowMatrix::NullaryExpr(d, rank, draw) * RowMatrix::NullaryExpr(rank, d, draw);
  std::vector<double> tokens(static_cast<std::size_t>(n * T * d));
  for (double& x : tokens) x = normal(engine);
  std::vector<std::int64_t> sequence, query, visible;
  for (Index i = 0; i < n; ++i) {
    const Eigen::Map<const RowMatrix> X(tokens.data() + i * T * d, T, d);
    for (Index t = 1; t < T; ++t) {
      sequence.push_back(i);
      query.push_back(t);
      visible.push_back(t + 1);
      (X.topRows(t + 1) * (W * X.row(t).transpose())).maxCoeff(&selected.emplace_back());
    }
  }
  const auto q = static_cast<Index>(query.size());
  return AttentionTask({.tokens = Array::own(tokens, {n, T, d}),
                        .query_token = Array::own(query, {q}),
                        .sequence = Array::own(sequence, {q}),
                        .visible = Array::own(visible, {q})});
}

TEST(NuclearHard, CausalTasksWithFarMoreRowsThanUnknowns) {
  std::vector<Index> selected;
  const AttentionTask task = causal(12, 40, 12, 3, selected);
  const MarginProblem problem = MarginProblem::attention(task, Selection::single(selected));
  optimum(problem, Norm::nuclear());
  // An interior point method leaves all multipliers nonzero, so they do not tell which rows matter.
  MarginSolution frobenius = proven(problem);
  frobenius.dual.array() += 1e-9;
  NuclearSolver solver;
  EXPECT_EQ(solver.solve(problem, frobenius, 1e-8, [](const SolveProgress&) { return false; }),
            NuclearSolver::Outcome::converged);
}

TEST(NuclearSolve, WarmStarts) {
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 9).task;
  const MarginProblem problem = of_optimal_tokens(task);
  const MarginSolution cold = optimum(problem, Norm::nuclear()), frobenius = optimum(problem, Norm::frobenius());
  for (const MarginSolution* warm : {&cold, &frobenius}) {
    const MarginSolution again = proven(problem, {.norm = Norm::nuclear()}, warm);
    EXPECT_TRUE(again.warm_started);
    EXPECT_EQ(again.status, MarginStatus::optimal);
    EXPECT_NEAR(again.objective, cold.objective, 1e-12 * cold.objective);
    if (warm == &cold) {
      EXPECT_LT(again.iterations, cold.iterations);
    }
  }
}

TEST(NuclearSolve, StartsWithTheTangentOfNobodyElse) {
  Threads threads(1);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, seed).task;
    const MarginProblem problem = of_optimal_tokens(task);
    MarginSolver used(threads);
    const SolveSettings settings{.norm = Norm::nuclear()};
    MarginSolution near = used.solve(problem, settings);
    near.W *= 1.001;  // the same rank and the same active rows at the first step
    near.dual *= 0.999;
    const MarginSolution& after = used.solve(problem, settings, &near);
    const MarginSolution alone = solve(problem, settings, threads, &near);
    EXPECT_EQ(after.W, alone.W) << seed;
    EXPECT_EQ(after.dual, alone.dual) << seed;
    EXPECT_EQ(after.iterations, alone.iterations) << seed;
  }
}

TEST(NuclearSolve, LimitsAreHonest) {
  const AttentionTask task = generate({.n = 10, .T = 8, .d = 12}, 1).task;
  const MarginProblem problem = of_optimal_tokens(task);
  for (const char* name : {"nuc", "lp:3"}) {
    for (const Index limit : {1, 4, 8}) {
      const MarginSolution solution = proven(problem, {.norm = Norm::parse(name), .iteration_limit = limit});
      if (!is_settled(solution.status)) {
        EXPECT_FALSE(solution.rank.certified);
      }
    }
  }
}

TEST(NuclearVerify, AlteredAnswersAreRefused) {
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 2).task;
  const MarginProblem problem = of_optimal_tokens(task);
  const StoredSolution good = stored(problem, optimum(problem, Norm::nuclear()), 1e-8);
  ASSERT_TRUE(verify(task, good).valid);
  const auto refused = [&](const auto& change, const std::string& words) {
    StoredSolution bad = good;
    change(bad);
    const Verification verdict = verify(task, bad);
    EXPECT_FALSE(verdict.valid) << words;
    EXPECT_NE(verdict.reason.find(words), std::string::npos) << verdict.reason;
  };
  refused([](StoredSolution& s) { s.K(1, 0) += 1e-6; }, "K Q'");
  refused([](StoredSolution& s) { s.Q(0, 0) *= 1.001; }, "K Q'");
  refused([](StoredSolution& s) { s.K *= 2, s.Q /= 2; }, "balanced");
  refused([](StoredSolution& s) { s.has_factors = false; }, "missing");
  refused([](StoredSolution& s) { s.K.conservativeResize(Eigen::NoChange, 1); }, "shape");
  refused([](StoredSolution& s) { s.W *= 0.999; }, "");
  refused([](StoredSolution& s) { s.W *= 1.001; }, "");
  refused(
      [](StoredSolution& s) {
        for (double& x : s.dual) x *= 1.01;
      },
      "dual norm");
  refused([](StoredSolution& s) { s.objective *= 1 + 1e-8; }, "objective");
  refused([](StoredSolution& s) { s.dual_objective *= 1 - 1e-8; }, "dual_objective");
  refused([](StoredSolution& s) { s.norm = "fro"; }, "");
  refused([](StoredSolution& s) { s.norm = "lp:9"; }, "objective");
  refused([](StoredSolution& s) { s.norm = "lp:0.9"; }, "norm");
}

}  // namespace
}  // namespace attsvm
