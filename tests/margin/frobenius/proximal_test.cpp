#include "margin/frobenius/proximal.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "margin/certify/certificate.h"
#include "margin/nuclear/rounds.h"
#include "margin/rows/row_spread.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using Outcome = ProximalSolver::Outcome;
using test::selected;

constexpr double kRounding = 1e-6;  // of what a model computes in float, relative

/// What heads of trained models look like in head space: n queries choose by x·z among T tokens each, whose coordinates
/// decay to `least`, as those of the queries do. Queries with the smallest tenth of the gaps are left out, and numbers
/// are those of float. Every text stands there `copies` times, apart by the rounding of float.
AttentionTask like_a_head(Index n, Index T, Index d, double least, std::uint64_t seed, Index copies = 1) {
  struct Choice {
    double gap;
    Index query, token;
  };
  const Random tokens(seed, 0, 0), queries(seed, 0, 1), turns(seed, 0, 2);
  RowMatrix turn(d, d);
  turns.normals({turn.data(), static_cast<std::size_t>(turn.size())});
  const RowMatrix axes = Eigen::HouseholderQR<RowMatrix>(turn).householderQ();
  const auto draw = [&](const Random& random, Index rows) {
    RowMatrix X(rows, d);
    random.normals({X.data(), static_cast<std::size_t>(X.size())});
    for (Index j = 0; j < d; ++j) X.col(j) *= std::pow(least, static_cast<double>(j) / static_cast<double>(d - 1));
    return RowMatrix((X * axes).cast<float>().cast<double>());
  };
  const RowMatrix X = draw(tokens, n * T), Z = draw(queries, n);
  std::vector<Choice> choices;
  for (Index i = 0; i < n; ++i) {
    const Eigen::VectorXd logits = X.middleRows(i * T, T) * Z.row(i).transpose();
    Index best = 0;
    const double top = logits.maxCoeff(&best);
    double next = -kInfinity;
    for (Index t = 0; t < T; ++t) next = t == best ? next : std::max(next, logits(t));
    choices.push_back({top - next, i, best});
  }
  std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) { return a.gap > b.gap; });
  choices.resize(static_cast<std::size_t>(n - n / 10));
  std::vector<double> numbers, vectors;
  std::vector<std::vector<Index>> keep;
  std::uint64_t rounded = 0;
  const Random roundings(seed, 0, 3);
  for (Index copy = 0; copy < copies; ++copy) {
    const auto append = [&](std::vector<double>& to, const double* from, Index count) {
      for (Index j = 0; j < count; ++j) {
        const double off = copy == 0 ? 0 : kRounding * (2 * roundings.uniform(rounded++) - 1);
        to.push_back(from[j] * (1 + off));
      }
    };
    for (const Choice& choice : choices) {
      append(numbers, X.row(choice.query * T).data(), T * d);
      append(vectors, Z.row(choice.query).data(), d);
      keep.push_back({choice.token});
    }
  }
  return test::make_task(static_cast<Index>(keep.size()), T, numbers, vectors, keep);
}

struct Answer {
  Outcome outcome{};
  MarginSolution solution{};
};

/// Solves, then certifies and verifies the answer.
Answer answer(const MarginProblem& problem, int threads = 1, const Eigen::VectorXd* warm_dual = nullptr) {
  constexpr double kTolerance = 1e-8;
  Threads pool(threads);
  ProximalSolver solver(problem, pool);
  Answer found{.outcome = solver.solve(kTolerance, warm_dual, nullptr)};
  solver.write(found.solution.W, found.solution.dual);
  found.solution.iterations = solver.iterations();
  EXPECT_TRUE((found.solution.dual.array() >= 0).all());
  if (found.outcome == Outcome::converged) {
    Certifier(pool).certify(problem, kTolerance, found.solution);
    EXPECT_EQ(found.solution.status, MarginStatus::optimal) << found.solution.gap << " " << found.solution.violation;
    const Verification verdict =
        verify(problem.task(), stored(problem, found.solution, kTolerance), {.tolerance = kTolerance});
    EXPECT_TRUE(verdict.valid) << verdict.reason;
  }
  return found;
}

TEST(Proximal, SolvesIllConditionedHeads) {
  for (const double least : {1e-1, 1e-2, 1e-3, 1e-4}) {
    const AttentionTask task = like_a_head(150, 20, 16, least, 3);
    EXPECT_EQ(answer(selected(task)).outcome, Outcome::converged) << least;
  }
}

/// The same through solve(), in both norms: rows in few directions go to methods that factorise, at once.
TEST(Proximal, HeadsAreSolvedInBothNorms) {
  for (const double least : {1e-2, 1e-3}) {
    const MarginProblem problem = selected(like_a_head(240, 24, 16, least, 5));
    EXPECT_LT(row_spread(problem, RowSums(problem)), 0.25) << least;
    EXPECT_EQ(test::optimum(problem).method, "proximal Newton") << least;
    const MarginSolution nuclear = test::proven(problem, {.norm = Norm::nuclear()});
    EXPECT_EQ(nuclear.status, MarginStatus::optimal) << least;
    EXPECT_EQ(nuclear.method, "interior point, Newton on the face") << least;
  }
}

/// Texts that a model read twice have the same rows but for its rounding. Neither method can tell which of two twins
/// has the multiplier until it is nearly done.
TEST(Proximal, TwinRowsAreSolvedInBothNorms) {
  for (const std::uint64_t seed : {5U, 6U, 7U}) {
    const MarginProblem problem = selected(like_a_head(120, 24, 16, 1e-2, seed, 2));
    EXPECT_EQ(test::optimum(problem).method, "proximal Newton") << seed;
    const MarginSolution nuclear = test::proven(problem, {.norm = Norm::nuclear()});
    EXPECT_EQ(nuclear.status, MarginStatus::optimal) << seed;
    EXPECT_EQ(nuclear.method, "interior point, Newton on the face") << seed;
  }
}

/// The rows that support head 0.0 of Whisper's decoder on 200 queries, twins among them. What is left of a proximal
/// step drowns in the rounding of λ before the twins have settled, and a line search would stand still.
TEST(Proximal, StepsBelowTheRoundingOfTheirMultipliersAreTakenWhole) {
  Threads pool(1);
  const AttentionTask task = load_task(ATTSVM_FIXTURES "/heads/twin_rows.npz", pool);
  const Answer found = answer(selected(task));
  EXPECT_EQ(found.outcome, Outcome::converged);
  EXPECT_LE(found.solution.iterations, 60);
}

/// What problems of millions of rows get: the solver sees few of the rows, and those that W misses join.
TEST(Proximal, NuclearRoundsFindTheRowsThatMatter) {
  const MarginProblem problem = selected(like_a_head(120, 24, 16, 1e-2, 5));
  const MarginSolution frobenius = test::optimum(problem);
  Threads pool(1);
  for (const Index most : {Index{40}, Index{300}, problem.rows()}) {
    NuclearSolver solver;
    EXPECT_GT(solve_in_rounds(solver, problem, frobenius, 1e-8, most, pool, [](const SolveProgress&) { return false; }),
              0);
    MarginSolution found{.norm = Norm::nuclear()};
    solver.write(found.K, found.Q, found.dual);
    Certifier(pool).certify(problem, 1e-8, found);
    EXPECT_EQ(found.status, MarginStatus::optimal) << most << ": " << found.gap;
    const Verification verdict = verify(problem.task(), stored(problem, found, 1e-8), {.tolerance = 1e-8});
    EXPECT_TRUE(verdict.valid) << verdict.reason;
  }
}

/// Random tokens fill the space, and stay with the working set, which takes a fraction of the time there.
TEST(Proximal, RandomTokensAreLeftToTheWorkingSet) {
  for (const Law law : {Law::random, Law::separable}) {
    const AttentionTask task = generate({.law = law, .n = 100, .T = 24, .d = 24}, 1).task;
    const MarginProblem problem =
        MarginProblem::attention(task, task.select() ? *task.select() : optimal_tokens(task).selection);
    EXPECT_GT(row_spread(problem, RowSums(problem)), 0.5);
    EXPECT_EQ(test::optimum(problem).method, "working set");
    EXPECT_EQ(test::proven(problem, {.norm = Norm::nuclear()}).method, "nuclear working set");
  }
}

/// What is known of the spread: unit vectors of e of d axes have the effective dimension e; too few queries say
/// nothing.
TEST(Proximal, TheSpreadOfRows) {
  const auto spread = [](Index n, Index axes, Index query_axes) {
    constexpr Index d = 8;
    std::vector<double> tokens, queries;
    for (Index i = 0; i < n; ++i) {
      for (Index t = 0; t < 2; ++t) {
        for (Index j = 0; j < d; ++j) tokens.push_back(t == 0 && j == i % axes ? 3.0 : 0.0);
      }
      for (Index j = 0; j < d; ++j) queries.push_back(j == i / axes % query_axes ? 0.5 : 0.0);
    }
    const MarginProblem problem = selected(
        test::make_task(n, 2, tokens, queries, std::vector<std::vector<Index>>(static_cast<std::size_t>(n), {0})));
    return row_spread(problem, RowSums(problem));
  };
  EXPECT_NEAR(spread(256, 8, 8), 1, 0.05);
  EXPECT_NEAR(spread(256, 2, 8), 0.25, 0.02);
  EXPECT_NEAR(spread(256, 2, 4), 0.125, 0.01);
  EXPECT_EQ(spread(256, 1, 1), 1.0 / 64);
  EXPECT_EQ(spread(15, 1, 1), 1);
}

TEST(Proximal, StartsFromMultipliers) {
  const MarginProblem problem = selected(like_a_head(150, 20, 16, 1e-2, 4));
  const Answer cold = answer(problem);
  const Eigen::VectorXd dual = 7 * cold.solution.dual;
  const Answer warm = answer(problem, 1, &dual);
  EXPECT_EQ(warm.outcome, Outcome::converged);
  EXPECT_LE(warm.solution.iterations, 3);
  EXPECT_GT(cold.solution.iterations, 8);
  const Eigen::VectorXd nothing = Eigen::VectorXd::Zero(problem.rows());
  EXPECT_EQ(answer(problem, 1, &nothing).outcome, Outcome::converged);
}

TEST(Proximal, GivesTheSameBytesForAnyNumberOfThreads) {
  const MarginProblem problem = selected(like_a_head(300, 12, 24, 1e-2, 6));
  const Answer one = answer(problem, 1), three = answer(problem, 3);
  EXPECT_EQ(one.solution.W, three.solution.W);
  EXPECT_EQ(one.solution.dual, three.solution.dual);
}

TEST(Proximal, GivesUp) {
  // Rows that conflict: two queries are the same and keep different tokens.
  const AttentionTask conflict = test::make_task(2, 2, {1, 0, 0, 1, 1, 0, 0, 1}, {1, 2, 1, 2}, {{0}, {1}});
  EXPECT_EQ(answer(selected(conflict)).outcome, Outcome::stalled);
  // A row that is zero.
  const AttentionTask same = test::make_task(1, 2, {1, 2, 1, 2}, {1, 1}, {{0}});
  EXPECT_EQ(answer(selected(same)).outcome, Outcome::stalled);
  // More violated rows at a time than unknowns: their support would fill the space.
  const AttentionTask full = generate({.law = Law::separable, .n = 600, .T = 8, .d = 4}, 1).task;
  EXPECT_EQ(answer(selected(full)).outcome, Outcome::stalled);
  EXPECT_EQ(test::optimum(selected(full)).method, "interior point");
}

TEST(Proximal, StopsWhenAsked) {
  const MarginProblem problem = selected(like_a_head(150, 20, 16, 1e-2, 4));
  Threads pool(1);
  ProximalSolver solver(problem, pool);
  EXPECT_EQ(solver.solve(1e-8, nullptr, [](const SolveProgress& now) { return now.iteration >= 5; }), Outcome::stopped);
  EXPECT_EQ(solver.iterations(), 5);
  MarginSolution solution;
  solver.write(solution.W, solution.dual);
  Certifier(pool).certify(problem, 1e-8, solution);
  EXPECT_GT(solution.dual_objective, 0);
}

}  // namespace
}  // namespace attsvm
