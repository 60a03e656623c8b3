#include "margin/frobenius/interior_point.h"

#include "margin/certify/certificate.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using Outcome = InteriorPointSolver::Outcome;
using test::kept;
using test::selected;

struct Answer {
  Outcome outcome{};
  MarginSolution solution{};
};

/// Solves, then certifies and verifies the answer.
Answer answer(const MarginProblem& problem, int threads = 1, double tolerance = 1e-8) {
  Threads pool(threads);
  InteriorPointSolver solver(problem, pool);
  Answer found{.outcome = solver.solve(tolerance, nullptr)};
  solver.write(found.solution.W, found.solution.dual);
  found.solution.history = solver.history();
  EXPECT_TRUE((found.solution.dual.array() >= 0).all());
  if (found.outcome == Outcome::converged) {
    Certifier(pool).certify(problem, tolerance, found.solution);
    EXPECT_EQ(found.solution.status, MarginStatus::optimal) << found.solution.gap << " " << found.solution.violation;
    const Verification verdict =
        verify(problem.task(), stored(problem, found.solution, tolerance), {.tolerance = tolerance});
    EXPECT_TRUE(verdict.valid) << verdict.reason;
  }
  return found;
}

void expect_same_as_exact(const MarginProblem& problem) {
  const Answer found = answer(problem);
  EXPECT_EQ(found.outcome, Outcome::converged);
  Threads alone(1);
  const MarginSolution exact = solve(problem, {}, alone);
  ASSERT_EQ(exact.status, MarginStatus::optimal);
  EXPECT_NEAR(found.solution.objective, exact.objective, 1e-7 * exact.objective);
  EXPECT_LE((found.solution.W - exact.W).norm(), 1e-3 * exact.objective);
}

TEST(InteriorPoint, AgreesWithTheExactSolver) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    expect_same_as_exact(selected(generate({.law = Law::separable, .n = 60, .T = 8, .d = 6}, seed).task));
  }
}

TEST(InteriorPoint, TakesAnyShape) {
  const Recipe recipes[] = {
      {.law = Law::separable, .n = 40, .T = 9, .d = 7, .dz = 3, .shortest = 2},  // ragged
      {.law = Law::separable, .n = 40, .T = 9, .d = 3, .dz = 17},
      {.law = Law::separable, .n = 8, .T = 9, .d = 5, .pattern = QueryPattern::causal},  // queries share tokens
      {.law = Law::separable, .n = 30, .T = 6, .d = 5, .pattern = QueryPattern::self},
      {.law = Law::separable, .n = 30, .T = 5, .d = 12, .pattern = QueryPattern::prompt},
      {.law = Law::separable, .n = 1, .T = 2, .d = 1},
      {.law = Law::separable, .n = 3, .T = 300, .d = 9},
  };
  for (const Recipe& recipe : recipes) expect_same_as_exact(selected(generate(recipe, 7).task));
}

TEST(InteriorPoint, FindsThePlantedOptimum) {
  const Drawn drawn = generate({.law = Law::planted, .n = 30, .T = 6, .d = 5}, 3);
  expect_same_as_exact(selected(drawn.task));
}

TEST(InteriorPoint, RelaxedRowsAskForLess) {
  const Drawn drawn = generate({.law = Law::separable, .n = 60, .T = 8, .d = 6}, 2);
  std::vector<Index> some, all;
  for (Index i = 0; i < 60; ++i) (i % 3 == 0 ? some : all).push_back(i);
  expect_same_as_exact(selected(drawn.task, some));
  all.insert(all.end(), some.begin(), some.end());
  const Answer nothing = answer(selected(drawn.task, all));
  EXPECT_EQ(nothing.outcome, Outcome::converged);
  EXPECT_EQ(nothing.solution.W.norm(), 0);
}

TEST(InteriorPoint, TheSizeOfTokensDoesNotMatter) {
  const Drawn drawn = generate({.law = Law::separable, .n = 60, .T = 8, .d = 6}, 4);
  const double objective = answer(selected(drawn.task)).solution.objective;
  for (const double factor : {1e-5, 1e7}) {
    TaskArrays arrays = drawn.task.arrays();
    std::vector<double> tokens;
    for (const double x : f64_span(arrays.tokens)) tokens.push_back(factor * x);
    arrays.tokens = Array::own(tokens, arrays.tokens.shape);
    const AttentionTask scaled(arrays);
    Threads alone(1);
    const MarginProblem problem = selected(scaled);
    InteriorPointSolver solver(problem, alone);
    EXPECT_EQ(solver.solve(1e-8, nullptr), Outcome::converged);
    RowMatrix W;
    Eigen::VectorXd lambda;
    solver.write(W, lambda);
    EXPECT_NEAR(W.norm() * factor, objective, 1e-7 * objective);
  }
}

TEST(InteriorPoint, MultipliersAreZeroOffTheSupport) {
  const Answer found = answer(selected(generate({.law = Law::separable, .n = 100, .T = 8, .d = 6}, 1).task));
  const Index carrying = (found.solution.dual.array() > 0).count();
  EXPECT_LE(carrying, 36);
  EXPECT_LE(found.solution.gap, 1e-8);
}

TEST(InteriorPoint, StallsOnAConflict) {
  const Drawn drawn = generate({.n = 60, .T = 8, .d = 4}, 1);
  EXPECT_EQ(answer(kept(drawn.task, 0)).outcome, Outcome::stalled);
  const AttentionTask copies(TaskArrays{.tokens = Array::own(std::vector<double>{1, 2, 1, 2, 3, 4}, {1, 3, 2})});
  EXPECT_EQ(answer(kept(copies, 0)).outcome, Outcome::stalled);
}

TEST(InteriorPoint, StopsWhenAsked) {
  const Drawn drawn = generate({.law = Law::separable, .n = 60, .T = 8, .d = 6}, 2);
  const MarginProblem problem = selected(drawn.task);
  Threads alone(1);
  InteriorPointSolver solver(problem, alone);
  EXPECT_EQ(solver.solve(1e-8, [](const SolveProgress& now) { return now.iteration == 3; }), Outcome::stopped);
  EXPECT_EQ(solver.iterations(), 3);
  ASSERT_EQ(solver.history().size(), 4U);
  EXPECT_LE(solver.history().back().dual_objective, answer(problem).solution.objective);
}

TEST(InteriorPoint, RefusesEqualityRows) {
  const Drawn drawn = generate({.n = 4, .T = 4, .d = 4}, 2);
  const MarginProblem problem = MarginProblem::attention(drawn.task, Selection::sets({{0, 1}, {0}, {0}, {0}}));
  Threads alone(1);
  EXPECT_THROW(InteriorPointSolver(problem, alone), std::logic_error);
}

}  // namespace
}  // namespace attsvm
