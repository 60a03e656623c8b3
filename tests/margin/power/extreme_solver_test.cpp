// The norms of power 1 and ∞, where optima need not be unique: closed forms, limits of other powers, degenerate tasks.
#include "margin/power/extreme_solver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::make_task;
using test::of_optimal_tokens;
using test::of_rows;
using test::proven;

constexpr std::array kNames = {"max", "l1", "spec"};

MarginSolution solved(const MarginProblem& problem, const char* norm) {
  MarginSolution solution = proven(problem, {.norm = Norm::parse(norm)});
  EXPECT_EQ(solution.status, MarginStatus::optimal) << norm << ", gap " << solution.gap;
  EXPECT_LE(solution.gap, 1e-10) << norm;
  return solution;
}

RowMatrix normals(Index rows, Index columns, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return test::gaussian(rows, columns, random);
}

TEST(ExtremeSolve, OneRow) {
  const RowMatrix delta = normals(1, 4, 1), zeta = normals(1, 3, 2);
  const AttentionTask task = of_rows(delta, zeta);
  for (const char* name : kNames) {
    const double expected = 1 / Norm::parse(name).dual_of(delta.transpose() * zeta);
    EXPECT_NEAR(solved(test::first_kept(task), name).objective, expected, 1e-12 * expected) << name;
  }
}

TEST(ExtremeSolve, OrthogonalQueriesShareNoSingularVector) {
  // Then W ζ_i can be chosen query by query: ‖W‖ is the largest of their norms, and all but that query are free.
  const RowMatrix delta = (RowMatrix(3, 4) << 1, 0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0.25, 0).finished();
  const AttentionTask task = of_rows(delta, RowMatrix::Identity(3, 3));
  const MarginSolution solution = solved(test::first_kept(task), "spec");
  EXPECT_NEAR(solution.objective, 4, 1e-12);
  EXPECT_EQ(solution.unique, false);
}

TEST(ExtremeSolve, UnusedCoordinatesLeaveTheLargestEntryOpen) {
  RowMatrix delta = normals(5, 4, 3);
  delta.col(2).setZero();
  const AttentionTask task = of_rows(delta, normals(5, 3, 4));
  EXPECT_EQ(solved(test::first_kept(task), "max").unique, false);
  EXPECT_EQ(solved(test::first_kept(task), "l1").unique, true);
}

TEST(ExtremeSolve, EqualCoordinatesLeaveTheSumOfEntriesOpen) {
  RowMatrix delta = normals(5, 4, 5);
  delta.col(3) = delta.col(0);
  const AttentionTask task = of_rows(delta, normals(5, 3, 6));
  EXPECT_EQ(solved(test::first_kept(task), "l1").unique, false);
}

TEST(ExtremeSolve, RandomTasksHaveOneAnswerInPolyhedralNorms) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, seed).task;
    for (const char* name : {"max", "l1"}) EXPECT_EQ(solved(of_optimal_tokens(task), name).unique, true) << seed;
    const MarginSolution smooth = proven(of_optimal_tokens(task), {.norm = Norm::schatten(3)});
    EXPECT_EQ(smooth.unique, true);
  }
}

TEST(ExtremeSolve, RandomTasksInTheSpectralNorm) {
  // Most have many answers. Number 1003 once left the path and did not come back.
  for (std::uint64_t seed = 990; seed < 1010; ++seed)
    solved(of_optimal_tokens(generate({.n = 6, .T = 8, .d = 10}, seed).task), "spec");
}

TEST(ExtremeSolve, PowersLeadToTheirLimits) {
  const AttentionTask task = generate({.n = 5, .T = 4, .d = 6}, 7).task;
  const MarginProblem problem = of_optimal_tokens(task);
  const auto objective = [&](const std::string& name) { return solved(problem, name.c_str()).objective; };
  const double max = objective("max"), l1 = objective("l1"), spec = objective("spec"), nuc = objective("nuc");
  EXPECT_NEAR(objective("lp:100000"), max, 1e-4 * max);
  EXPECT_NEAR(objective("lp:1.00001"), l1, 1e-4 * l1);
  EXPECT_NEAR(objective("schatten:100000"), spec, 1e-4 * spec);
  EXPECT_NEAR(objective("schatten:1.00001"), nuc, 1e-4 * nuc);
  double before = l1;  // power norms fall as the power grows
  for (const char* name : {"lp:1.2", "lp:1.7", "fro", "lp:4", "lp:30", "max"}) {
    const double now = objective(name);
    EXPECT_LE(now, before * (1 + 1e-9)) << name;
    before = now;
  }
  before = nuc;
  for (const char* name : {"schatten:1.2", "schatten:1.7", "fro", "schatten:4", "schatten:30", "spec"}) {
    const double now = objective(name);
    EXPECT_LE(now, before * (1 + 1e-9)) << name;
    before = now;
  }
}

TEST(ExtremeSolve, VectorsHaveOneSingularValue) {
  const RowMatrix delta = normals(6, 5, 8);
  const std::vector<double> tokens = [&] {
    std::vector<double> numbers;
    for (Index i = 0; i < 6; ++i) {
      for (Index j = 0; j < 5; ++j) numbers.push_back(std::abs(delta(i, j)));
      numbers.insert(numbers.end(), 5, 0.0);
    }
    return numbers;
  }();
  const MarginProblem problem = test::first_kept(make_task(6, 2, tokens));
  const double frobenius = solved(problem, "fro").objective;
  for (const char* name : {"spec", "nuc", "schatten:1.3", "schatten:7"})
    EXPECT_NEAR(solved(problem, name).objective, frobenius, 1e-9 * frobenius) << name;
}

TEST(ExtremeSolve, SetsRelaxedRowsAndValues) {
  const AttentionTask task = test::separable({.n = 8, .T = 5, .d = 9}, 3);
  for (const char* name : {"max", "l1", "spec", "schatten:1.5", "schatten:5"}) {
    solved(MarginProblem::attention(task, test::with_ties(task)), name);
    solved(test::selected(task, test::every_fourth(task)), name);
  }
  const AttentionTask labelled = generate({.n = 5, .T = 4, .d = 8}, 5).task;
  for (const char* name : kNames) solved(MarginProblem::value(labelled, optimal_tokens(labelled).selection), name);
}

TEST(ExtremeSolve, DegenerateTokens) {
  // Signs and small integers: many vertices coincide.
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<int> digit(-1, 1);
    std::vector<double> tokens(4 * 3 * 5), queries(4 * 5);
    for (double& x : tokens) x = digit(random);
    for (double& x : queries) x = digit(random);
    const AttentionTask task = make_task(4, 3, tokens, queries);
    for (const char* name : kNames) {
      const MarginSolution solution = proven(test::first_kept(task), {.norm = Norm::parse(name)});
      EXPECT_TRUE(is_settled(solution.status)) << name << ", seed " << seed << ", gap " << solution.gap;
    }
  }
}

/// Many more rows than are taken at first, of tokens that the identity chooses, as in a head.
MarginProblem chosen_by_identity(Index n, Index T, Index d, std::uint64_t seed) {
  const RowMatrix queries = normals(n, d, seed);
  RowMatrix tokens = normals(n * T, d, seed + 1000);
  for (Index i = 0; i < n; ++i) {
    Index best = 0;
    (tokens.middleRows(i * T, T) * queries.row(i).transpose()).maxCoeff(&best);
    tokens.row(i * T).swap(tokens.row(i * T + best));
  }
  return test::first_kept(make_task(n, T, {tokens.data(), tokens.data() + tokens.size()},
                                    {queries.data(), queries.data() + queries.size()}));
}

TEST(ExtremeSolve, RowsAreAddedOnTheWay) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const MarginProblem problem = chosen_by_identity(64, 33, 16, seed);
    ASSERT_EQ(problem.rows(), 2048);
    for (const char* name : kNames) {
      const MarginSolution loose = proven(problem, {.norm = Norm::parse(name), .tolerance = 1e-3});
      EXPECT_EQ(loose.status, MarginStatus::optimal) << name << ", seed " << seed << ", gap " << loose.gap;
      const MarginSolution tight = proven(problem, {.norm = Norm::parse(name), .tolerance = 1e-7});
      EXPECT_EQ(tight.status, MarginStatus::optimal) << name << ", seed " << seed << ", gap " << tight.gap;
      EXPECT_LE(tight.objective, loose.objective * (1 + 1e-7)) << name << ", seed " << seed;
    }
  }
}

TEST(ExtremeSolve, LimitsAreHonest) {
  const MarginProblem problem = of_optimal_tokens(generate({.n = 10, .T = 8, .d = 12}, 1).task);
  for (const char* name : kNames) {
    for (const Index limit : {1, 3, 6, 9}) {
      const MarginSolution solution = proven(problem, {.norm = Norm::parse(name), .iteration_limit = limit});
      EXPECT_TRUE(solution.status == MarginStatus::limit || solution.status == MarginStatus::optimal);
      EXPECT_TRUE(solution.status == MarginStatus::optimal || !solution.unique.has_value());
    }
  }
}

TEST(ExtremeSolve, StoppedAnswersAreNoWorseThanTheFrobeniusOne) {
  const MarginProblem problem = of_optimal_tokens(generate({.n = 10, .T = 8, .d = 12}, 2).task);
  Index asked = 0;
  const auto count = [&](const SolveProgress&) { return ++asked > 1'000'000; };
  const MarginSolution frobenius = proven(problem, {.progress = count});
  const Index before = asked;
  for (const char* name : {"max", "l1", "spec", "lp:3", "schatten:1.5"}) {
    const Norm norm = Norm::parse(name);
    for (Index more = 1; more < 6; ++more) {
      asked = 0;
      const MarginSolution solution =
          proven(problem, {.norm = norm, .progress = [&](const SolveProgress&) { return ++asked > before + more; }});
      EXPECT_LE(solution.objective, norm.of(frobenius.W) * (1 + 1e-9)) << name << ", " << more << " more";
    }
  }
}

TEST(Frame, TurnsAndTurnsBack) {
  for (const NormFamily family : {NormFamily::entrywise, NormFamily::schatten}) {
    Frame<double> frame;
    frame.shape(family, 5, 3);
    const RowMatrix X = normals(5, 3, 9), Y = normals(5, 3, 10);
    const Eigen::Map<const Eigen::VectorXd> x(X.data(), 15), y(Y.data(), 15);
    frame.take(x);
    Eigen::VectorXd c, back, again;
    frame.into(y, c);
    frame.out_of(c, back);
    EXPECT_LE((back - y).norm(), 1e-14 * y.norm());
    EXPECT_NEAR(c.norm(), y.norm(), 1e-14 * y.norm());
    frame.compose(frame.values(), again);
    EXPECT_LE((again - x).norm(), 1e-14 * x.norm());
    frame.into(x, c);  // X itself is diagonal
    for (Index i = 0; i < frame.value_count(); ++i) c(frame.diagonal(i)) -= frame.values()(i);
    EXPECT_LE(c.norm(), 1e-14 * x.norm());
  }
}

TEST(Frame, FollowsMatricesThatChange) {
  // Decompositions start from the one before; ranks fall and rise, shapes change, and tiny matrices go another way.
  Frame<double> frame;
  for (const auto& [left, right] : {std::pair<Index, Index>{5, 3}, {10, 10}, {4, 1}, {6, 4}}) {
    frame.shape(NormFamily::schatten, left, right);
    const RowMatrix first = normals(left, right, 11), last = normals(left, right, 12);
    const RowMatrix one = first.col(0) * last.row(0);
    for (int step = 0; step < 40; ++step) {
      SCOPED_TRACE(testing::Message() << left << " by " << right << ", step " << step);
      RowMatrix X = step % 10 == 9 ? one : RowMatrix(first + step / 40.0 * last);
      if (step == 20) X.setZero();
      if (step % 15 == 14) X *= 1e-140;
      const Eigen::Map<const Eigen::VectorXd> x(X.data(), X.size());
      frame.take(x);
      Eigen::VectorXd again;
      frame.compose(frame.values(), again);
      EXPECT_LE((again - x).norm(), 1e-13 * x.norm());  // V has collected the rounding of up to 16 decompositions
      EXPECT_LE((frame.U().transpose() * frame.U() - RowMatrix::Identity(left, left)).norm(), 1e-13);
      EXPECT_LE((frame.V().transpose() * frame.V() - RowMatrix::Identity(right, right)).norm(), 1e-13);
      EXPECT_TRUE(std::is_sorted(frame.values().begin(), frame.values().end(), std::greater<>()));
    }
  }
}

}  // namespace
}  // namespace attsvm
