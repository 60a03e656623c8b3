#include "margin/certify/rank.h"

#include <cmath>
#include <random>

#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::first_kept;
using test::of_optimal_tokens;
using test::of_rows;
using test::proven;

MarginSolution nuclear(const MarginProblem& problem) {
  MarginSolution solution = proven(problem, {.norm = Norm::nuclear()});
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap;
  EXPECT_EQ(solution.rank.rank, solution.K.cols());
  EXPECT_EQ(solution.rank.words.empty(), solution.rank.certified);
  return solution;
}

double smallest_of(const MarginSolution& solution) { return test::svd_of(solution.W).sigma(solution.K.cols() - 1); }

TEST(NuclearRank, OptimaOfSeveralRanksAreNotCertified) {
  for (const Index d : {2, 9, 51, 64}) {  // W_ii ≥ 1: the identity and the matrix of ones are both optimal
    const AttentionTask task = of_rows(RowMatrix::Identity(d, d), RowMatrix::Identity(d, d));
    const MarginSolution solution = nuclear(first_kept(task));
    EXPECT_NEAR(solution.objective, static_cast<double>(d), 1e-7 * static_cast<double>(d));
    EXPECT_FALSE(solution.rank.certified) << d;
  }
}

TEST(NuclearRank, NoiseIsNotADirection) {  // the optimum is [0 0; −1/3 2/3], and A(dual) has both singular values at 1
  const RowMatrix delta{{0, -1}, {-3, -1}, {-1, 1}}, zeta{{1, -1}, {-1, -2}, {-1, 1}};
  const AttentionTask task = of_rows(delta, zeta);
  const MarginSolution solution = nuclear(first_kept(task));
  EXPECT_NEAR(solution.objective, std::sqrt(5.0) / 3, 1e-9);
  EXPECT_EQ(solution.rank.rank, 1);
  EXPECT_FALSE(solution.rank.certified);
  EXPECT_NE(solution.rank.words.find("strict complementarity"), std::string_view::npos) << solution.rank.words;
}

TEST(NuclearRank, NearlyEqualRowsDoNotAddToTheRank) {  // the optimum is e₀e₀ᵀ, with rows that miss it by little
  const RowMatrix delta{{1, 1}, {1, -1}, {1, 1.0034496391383336}, {1, -0.9999999134980858}, {1, 1.80635034362338}};
  const RowMatrix zeta{{1, 1}, {1, -1}, {1, 0.9991074352094658}, {1, -0.999999947663983}, {1, -0.5358885712967204}};
  const AttentionTask task = of_rows(delta, zeta);
  const MarginSolution solution = nuclear(first_kept(task));
  EXPECT_NEAR(solution.objective, 1, 1e-8);
  if (solution.rank.certified) {
    EXPECT_EQ(solution.rank.rank, 1);
  }
}

TEST(NuclearRank, IntegerProblemsCertifyOnlySingularValuesThatAreThere) {
  std::mt19937 engine(7);
  std::uniform_int_distribution<int> number(-2, 2);
  int certified = 0;
  for (int k = 0; k < 300; ++k) {
    const Index d = 2 + k % 2, n = 2 + k % 5;
    const auto draw = [&](Index) { return static_cast<double>(number(engine)); };
    const RowMatrix delta = RowMatrix::NullaryExpr(n, d, draw), zeta = RowMatrix::NullaryExpr(n, d, draw);
    const AttentionTask task = of_rows(delta, zeta);
    const MarginSolution solution = proven(first_kept(task), {.norm = Norm::nuclear()});
    if (solution.status != MarginStatus::optimal || solution.K.cols() == 0) continue;
    EXPECT_EQ(solution.rank.rank, solution.K.cols());
    if (!solution.rank.certified) continue;
    ++certified;
    EXPECT_GE(smallest_of(solution), 1e-6 * solution.objective) << k;
  }
  EXPECT_GE(certified, 50);
}

TEST(NuclearRank, OrdinaryRanksAreCertifiedAndAWideGapDecidesNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, seed).task;
    const MarginProblem problem = of_optimal_tokens(task);
    MarginSolution solution = nuclear(problem);
    EXPECT_TRUE(solution.rank.certified) << seed << " " << solution.rank.words;
    RowMatrix A = RowMatrix::Zero(problem.d(), problem.dz());
    Eigen::VectorXd delta(problem.d());
    for (const MarginGroup& group : problem.groups()) {
      for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
        problem.delta(group, k, delta.data());
        A += solution.dual(k) * delta * ConstVector(group.z, problem.dz()).transpose();
      }
    }
    Spectrum spectrum;
    spectrum.compute(A, 1e-12);
    RankCertifier certifier;
    EXPECT_TRUE(certifier.certify(problem, solution, spectrum).certified);
    solution.dual_objective *= 1 - 1e-5;
    EXPECT_FALSE(certifier.certify(problem, solution, spectrum).certified);
    solution.dual_objective /= 1 - 1e-5;
    solution.status = MarginStatus::limit;
    EXPECT_FALSE(certifier.certify(problem, solution, spectrum).certified);
  }
}

}  // namespace
}  // namespace attsvm
