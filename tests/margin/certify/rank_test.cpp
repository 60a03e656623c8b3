#include "margin/certify/rank.h"

#include <cmath>
#include <optional>
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
    EXPECT_TRUE(certifier.certify(problem, RowSums(problem), solution, spectrum).certified);
    solution.dual_objective *= 1 - 1e-5;
    EXPECT_FALSE(certifier.certify(problem, RowSums(problem), solution, spectrum).certified);
    solution.dual_objective /= 1 - 1e-5;
    solution.status = MarginStatus::limit;
    EXPECT_FALSE(certifier.certify(problem, RowSums(problem), solution, spectrum).certified);
  }
}

/// W = e_0e_0ᵀ + … of a rank, as an optimum for W_jj ≥ 1 in the first rows and W_jj ≥ 0 in the others.
struct Diagonal {
  Diagonal(Index d, Index rank) : task(of_rows(RowMatrix::Identity(d, d), RowMatrix::Identity(d, d))) {
    std::vector<Index> relax;
    for (Index i = rank; i < d; ++i) relax.push_back(i);
    problem.emplace(first_kept(task, relax));
    solution.status = MarginStatus::optimal;
    solution.norm = Norm::nuclear();
    solution.K = solution.Q = RowMatrix::Identity(d, rank);
    solution.W = solution.K * solution.Q.transpose();
    solution.dual = Eigen::VectorXd::Zero(d);
    solution.dual.head(rank).setOnes();
    solution.slack = Eigen::VectorXd::Zero(d);
    solution.objective = solution.dual_objective = static_cast<double>(rank);
  }
  RankCertificate certify() const {
    Spectrum spectrum;
    spectrum.compute(problem->weigh(solution.dual), 1e-14);
    return RankCertifier().certify(*problem, RowSums(*problem), solution, spectrum);
  }

  AttentionTask task;
  std::optional<MarginProblem> problem;
  MarginSolution solution;
};

TEST(RankCertifier, CertifiesWhatOneRowDetermines) {
  const Diagonal one(4, 1);
  const RankCertificate proof = one.certify();
  EXPECT_TRUE(proof.certified) << proof.words;
  EXPECT_EQ(proof.rank, 1);
  EXPECT_LE(proof.next_singular_value, 1e-7);
  EXPECT_LE(proof.outside_mass, 1e-14);
}

TEST(RankCertifier, NothingAskedIsRankZero) {
  Diagonal none(3, 1);
  none.solution.K.resize(3, 0);
  none.solution.Q.resize(3, 0);
  const RankCertificate proof = none.certify();
  EXPECT_TRUE(proof.certified);
  EXPECT_EQ(proof.rank, 0);
}

TEST(RankCertifier, SaysWhyItCannot) {
  const auto expect_words = [](const Diagonal& given, std::string_view words) {
    const RankCertificate proof = given.certify();
    EXPECT_FALSE(proof.certified) << words;
    EXPECT_NE(proof.words.find(words), std::string_view::npos) << proof.words;
  };
  expect_words(Diagonal(4, 2), "not known to be unique");  // [1 c; c 1] is optimal for every c up to one
  Diagonal open(4, 1);
  open.solution.status = MarginStatus::limit;
  expect_words(open, "not proven optimal");
  Diagonal wide(4, 1);
  wide.solution.dual_objective = 1 - 1e-4;
  expect_words(wide, "gap");
  Diagonal missed(4, 1);
  missed.solution.slack(0) = 1;
  expect_words(missed, "gap");
  Diagonal violated(4, 1);
  violated.solution.violation = 1e-3;
  expect_words(violated, "gap");
  Diagonal touching(4, 1);  // a row that W meets with slack zero has a multiplier, and A(dual) a second value of one
  touching.solution.dual(1) = 1;
  expect_words(touching, "strict complementarity");
}

TEST(RankCertifier, StatesTheNextSingularValueAndTheMassThatItAllows) {
  Diagonal given(4, 1);
  given.solution.dual(1) = 0.75;
  given.solution.dual_objective = 1 - 1e-9;
  const RankCertificate proof = given.certify();
  EXPECT_NEAR(proof.next_singular_value, 0.75, 1e-9);
  EXPECT_GE(proof.outside_mass, 1e-9 / 0.25 * (1 - 1e-5));  // ⟨A, X⟩ falls short of ‖X‖∗ by a quarter of that mass
  EXPECT_LE(proof.outside_mass, 1e-9 / 0.25 * (1 + 1e-5));
  EXPECT_TRUE(proof.certified) << proof.words;
}

}  // namespace
}  // namespace attsvm
