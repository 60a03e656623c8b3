// The solver of the entrywise norms: closed forms, and tasks whose W has zeros, near conflicts, relaxed and equal rows.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <random>

#include "margin/power/path.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::first_kept;
using test::make_task;
using test::proven;
using test::selected;

constexpr std::array kPowers = {1.01, 1.05, 1.25, 1.5, 2.0, 3.0, 5.0, 8.0};

/// Expects a proof of optimality to `gap` for every power.
void expect_solved(const MarginProblem& problem, double gap = 1e-8) {
  for (const double p : kPowers) {
    SCOPED_TRACE(fmt::format("lp:{}", p));
    const MarginSolution solution = proven(problem, {.norm = Norm::entrywise(p)});
    EXPECT_EQ(solution.status, MarginStatus::optimal);
    EXPECT_LE(solution.gap, gap);
  }
}

std::vector<double> normals(std::mt19937_64& random, std::size_t count) {
  std::normal_distribution<double> normal;
  std::vector<double> numbers(count);
  for (double& x : numbers) x = normal(random);
  return numbers;
}

/// The unit vectors of a size, in the order of a list.
std::vector<double> one_hot(const std::vector<Index>& ids, Index size) {
  std::vector<double> numbers(ids.size() * static_cast<std::size_t>(size), 0.0);
  for (std::size_t k = 0; k < ids.size(); ++k)
    numbers[k * static_cast<std::size_t>(size) + static_cast<std::size_t>(ids[k])] = 1;
  return numbers;
}

/// One row: W = sign(row)|row|^{q−1} / ‖row‖_q^q, and ‖W‖_p = 1/‖row‖_q.
void expect_closed_form(const std::vector<double>& tokens, const std::vector<double>& query) {
  const AttentionTask task = make_task(1, 2, tokens, query);
  const MarginProblem problem = first_kept(task);
  const RowMatrix row = problem.weigh(Eigen::VectorXd::Ones(1));
  for (const double p : kPowers) {
    SCOPED_TRACE(fmt::format("lp:{}", p));
    const MarginSolution solution = proven(problem, {.norm = Norm::entrywise(p)});
    const double expected = 1 / Norm::entrywise(p).dual_of(row);
    EXPECT_EQ(solution.status, MarginStatus::optimal);
    EXPECT_NEAR(solution.objective, expected, 1e-11 * expected);
  }
}

TEST(PowerSolve, OneRow) {
  expect_closed_form({1, 0, 2, 1, 0, -2}, {-2, -1, 1, 0});  // zeros in W, and a coordinate that no row touches
  expect_closed_form({3, 0}, {1});
  expect_closed_form({1e8, -2e8, 0, 3e8}, {1e-3, 5, -2});
  std::mt19937_64 random(5);
  for (const std::size_t d : {1U, 2U, 5U}) {
    for (const std::size_t dz : {1U, 4U}) expect_closed_form(normals(random, 2 * d), normals(random, dz));
  }
}

TEST(PowerSolve, OneHotTokens) {
  std::mt19937_64 random(11);
  for (int draw = 0; draw < 12; ++draw) {
    const Index size = 4 + draw % 4, n = 2 + draw % 3, T = 2 + draw % 3;
    std::vector<Index> ids, asked;
    std::vector<Index> all(static_cast<std::size_t>(size));
    for (Index i = 0; i < size; ++i) all[static_cast<std::size_t>(i)] = i;
    for (Index i = 0; i < n; ++i) {
      std::shuffle(all.begin(), all.end(), random);
      ids.insert(ids.end(), all.begin(), all.begin() + T);
      asked.push_back((i * 7 + draw) % size);
    }
    const std::vector<double> tokens = one_hot(ids, size);
    SCOPED_TRACE(fmt::format("draw {}", draw));
    for (const std::vector<double>& queries :
         {one_hot(asked, size), normals(random, static_cast<std::size_t>(3 * n))}) {
      const AttentionTask task = make_task(n, T, tokens, queries);
      if (proven(first_kept(task), {}).status == MarginStatus::optimal) expect_solved(first_kept(task));
    }
  }
}

TEST(PowerSolve, NearConflict) {  // two queries that nearly agree and want opposite tokens
  for (const double apart : {1e-1, 1e-3, 1e-5}) {
    SCOPED_TRACE(fmt::format("apart by {}", apart));
    std::mt19937_64 random(3);
    const std::vector<double> tokens = normals(random, 2 * 3), other = normals(random, 2 * 3);
    std::vector<double> both = tokens;
    for (std::size_t k = 0; k < 6; ++k) both.push_back(tokens[k] + apart * other[k]);
    const AttentionTask task = make_task(2, 2, both, {1, -0.5, 1 + apart, -0.5 + 2 * apart}, {{0}, {1}});
    expect_solved(selected(task));
  }
}

TEST(PowerSolve, NearlyEqualKeptTokens) {
  std::mt19937_64 random(9);
  for (const double apart : {1.0, 1e-4, 1e-8}) {
    SCOPED_TRACE(fmt::format("apart by {}", apart));
    const Index n = 3, T = 4, d = 5;
    std::vector<double> tokens = normals(random, static_cast<std::size_t>(n * T * d));
    const std::vector<double> other = normals(random, static_cast<std::size_t>(n * d));
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 5; ++j) tokens[i * 20 + 5 + j] = tokens[i * 20 + j] + apart * other[i * 5 + j];
    }
    const AttentionTask task = make_task(n, T, tokens, normals(random, 9), {{0, 1}, {0, 1}, {0, 1}});
    expect_solved(selected(task));
    const std::vector<Index> relax = {1};
    expect_solved(selected(task, relax));
  }
}

TEST(PowerSolve, RelaxedRowsThatLeaveNoInterior) {
  // Query 0 is relaxed and sees tokens on both sides of the kept one: in effect δᵀWζ = 0.
  const AttentionTask task = make_task(2, 3, {0, 0, 0, 1, 2, 0, -1, -2, 0, 0, 0, 0, -1, 0, 1, -2, 1, 0}, {1, 1, 2, -1});
  const std::vector<Index> relax = {0};
  expect_solved(first_kept(task, relax));
}

TEST(PowerSolve, DependentEqualRows) {  // five kept tokens in two dimensions
  std::mt19937_64 random(21);
  const Index T = 6, d = 3;
  std::vector<double> tokens = normals(random, static_cast<std::size_t>(T * d));
  for (std::size_t t = 0; t < 5; ++t) tokens[t * 3 + 2] = 0.5;  // puts the tokens in a plane
  const AttentionTask task = make_task(1, T, tokens, {1, -2}, {{0, 1, 2, 3, 4}});
  expect_solved(selected(task));
}

TEST(PowerSolve, MixedScales) {
  std::mt19937_64 random(33);
  std::vector<double> tokens = normals(random, 3 * 3 * 4), queries = normals(random, 3 * 4);
  for (std::size_t k = 0; k < 12; ++k) tokens[k] *= 1e8, tokens[12 + k] *= 1e-8;
  for (std::size_t k = 0; k < 4; ++k) queries[k] *= 1e-4, queries[8 + k] *= 1e8;
  expect_solved(first_kept(make_task(3, 3, tokens, queries)));
  for (std::size_t k = 0; k < tokens.size(); ++k) tokens[k] = std::round(3 * normals(random, 1)[0]);  // ties
  const AttentionTask integers = make_task(3, 3, tokens, {1, 0, -1, 2, 0, 1, 1, 0, -2, 1, 0, 0});
  if (proven(first_kept(integers), {}).status == MarginStatus::optimal) expect_solved(first_kept(integers));
}

TEST(PowerSolve, SetsOfKeptTokens) {
  std::mt19937_64 random(41);
  for (int draw = 0; draw < 12; ++draw) {
    SCOPED_TRACE(fmt::format("draw {}", draw));
    const AttentionTask task =
        make_task(4, 5, normals(random, 4 * 5 * 7), normals(random, 4 * 6), {{0, 1, 2}, {0, 1}, {0, 1}, {0, 1}});
    expect_solved(selected(task), 1e-9);
  }
}

TEST(PowerSolve, CoordinatesOfDifferentScales) {
  std::mt19937_64 random(17);
  std::uniform_int_distribution<int> size(1, 4), exponent(-6, 6);
  constexpr double kHard = 1e6;  // ‖W‖ times the longest row
  int solved = 0;
  for (int draw = 0; draw < 60; ++draw) {
    SCOPED_TRACE(fmt::format("draw {}", draw));
    const Index n = size(random), T = 1 + size(random), d = size(random), dz = size(random);
    std::vector<double> tokens = normals(random, static_cast<std::size_t>(n * T * d)),
                        queries = normals(random, static_cast<std::size_t>(n * dz));
    std::vector<double> scales(8);
    for (double& scale : scales) scale = std::pow(10.0, exponent(random));
    for (std::size_t k = 0; k < tokens.size(); ++k) tokens[k] *= scales[k % static_cast<std::size_t>(d)];
    for (std::size_t k = 0; k < queries.size(); ++k) queries[k] *= scales[4 + k % static_cast<std::size_t>(dz)];
    const AttentionTask task = make_task(n, T, tokens, queries);
    const MarginProblem problem = first_kept(task);
    Threads threads(1);
    const MarginSolution frobenius = solve(problem, {}, threads);  // some of these draws are too hard for double
    double longest = 0;
    for (Index k = 0; k < problem.rows(); ++k)
      longest = std::max(longest, problem.weigh(Eigen::VectorXd::Unit(problem.rows(), k)).norm());
    if (frobenius.status != MarginStatus::optimal || frobenius.objective * longest > kHard) continue;
    ++solved;
    expect_solved(problem);
  }
  EXPECT_GE(solved, 20);
}

TEST(PowerSolve, EqualRowsAlone) {  // the finite part has no inequality
  const AttentionTask task = generate({.n = 3, .T = 4, .d = 6}, 2).task;
  const Selection pairs = Selection::sets({{0, 1, 2}, {1, 3}, {0, 3}});
  RowMatrix logs(3, 4);
  logs << -1.0, -2.5, -0.7, -9, -4, -1, -3, -0.5, -0.2, -8, -7, -1.4;
  const MarginProblem problem = MarginProblem::finite_part(task, pairs, logs);
  for (const double p : kPowers) {
    const MarginSolution solution = proven(problem, {.norm = Norm::entrywise(p)});
    EXPECT_EQ(solution.status, MarginStatus::optimal) << p << " " << solution.gap << " " << solution.violation;
  }
}

TEST(PowerPath, ExtendedPrecisionAgrees) {
  const AttentionTask task = generate({.n = 4, .T = 4, .d = 5}, 8).task;
  const MarginProblem problem = test::of_optimal_tokens(task);
  const MarginSolution frobenius = proven(problem, {});
  for (const double p : kPowers) {
    PowerPath<double> plain;
    PowerPath<long double> wide;
    RowMatrix W, wide_W;
    Eigen::VectorXd lambda;
    plain.load(problem, Norm::entrywise(p), frobenius.W, frobenius.dual, nullptr, 0.1);
    wide.load(problem, Norm::entrywise(p), frobenius.W, frobenius.dual, nullptr, 0.3);
    const auto go_on = [](double, double) { return false; };
    EXPECT_TRUE(plain.follow(go_on));
    EXPECT_TRUE(wide.follow(go_on));
    EXPECT_LE(plain.gap(), 1e-12) << p;
    EXPECT_LE(wide.gap(), 1e-13) << p;
    plain.write(W, lambda);
    wide.write(wide_W, lambda);
    const Norm norm = Norm::entrywise(p);
    EXPECT_NEAR(norm.of(W), norm.of(wide_W), 1e-11 * norm.of(W)) << p;
    EXPECT_FALSE(plain.follow([](double, double) { return true; }));
  }
}

TEST(PowerSolve, OrderAndLimitCases) {
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 3).task;
  const MarginProblem problem = test::of_optimal_tokens(task);
  double before = HUGE_VAL;
  for (const double p : {1.1, 1.5, 2.0, 3.0, 5.0, 8.0}) {  // ‖W‖_p falls as p grows, and so does its minimum
    const MarginSolution solution = proven(problem, {.norm = Norm::entrywise(p)});
    EXPECT_EQ(solution.status, MarginStatus::optimal) << p;
    EXPECT_EQ(solution.norm, Norm::entrywise(p));
    EXPECT_LE(solution.gap, 1e-10) << p;
    EXPECT_LE(solution.objective, before * (1 + 1e-9));
    before = solution.objective;
    const RowMatrix A = problem.weigh(solution.dual);  // W is the gradient map of A
    const RowMatrix aligned = (A.array().sign() * A.array().abs().pow(1 / (p - 1))).matrix();
    EXPECT_NEAR(aligned.cwiseProduct(solution.W).sum() / aligned.norm() / solution.W.norm(), 1, 1e-6) << p;
  }
}

}  // namespace
}  // namespace attsvm
