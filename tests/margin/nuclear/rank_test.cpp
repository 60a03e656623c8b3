// What is proven about the rank of nuclear-norm optima, and answers on data that is degenerate or has far more rows
// than unknowns.
#include <cmath>
#include <random>

#include "attsvm/norm.h"
#include "base/decompositions.h"
#include "base/spectrum.h"
#include "margin/certify/rank.h"
#include "margin/nuclear/solver.h"
#include "margin/streaming/face_blocks.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::first_kept;
using test::of_optimal_tokens;
using test::proven;

/// One row per query: δ and ζ.
AttentionTask of_rows(const RowMatrix& delta, const RowMatrix& zeta) {
  const Index n = delta.rows(), d = delta.cols(), dz = zeta.cols();
  std::vector<double> tokens(static_cast<std::size_t>(2 * n * d), 0.0), queries(zeta.data(), zeta.data() + n * dz);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < d; ++j) tokens[static_cast<std::size_t>(2 * i * d + j)] = delta(i, j);
  return AttentionTask({.tokens = Array::own(tokens, {n, 2, d}), .queries = Array::own(queries, {n, dz})});
}

MarginSolution nuclear(const MarginProblem& problem) {
  MarginSolution solution = proven(problem, {.norm = Norm::nuclear()});
  EXPECT_EQ(solution.status, MarginStatus::optimal) << solution.gap;
  EXPECT_EQ(solution.rank.rank, solution.K.cols());
  EXPECT_EQ(solution.rank.words.empty(), solution.rank.certified);
  return solution;
}

double smallest_of(const MarginSolution& solution) {
  return Eigen::BDCSVD<Eigen::MatrixXd>(solution.W).singularValues()(solution.K.cols() - 1);
}

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

TEST(Spectrum, BoundsBeyondTheFirstSingularValues) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {3, 7}, {20, 20}, {70, 60}}) {
    const RowMatrix A = RowMatrix::Random(rows, columns);
    const Eigen::BDCSVD<Eigen::MatrixXd> svd(A, Eigen::ComputeThinU | Eigen::ComputeThinV);
    Spectrum spectrum;
    spectrum.compute(A, 1e-12);
    const Index n = std::min(rows, columns);
    for (Index r = 0; r < n; ++r) {
      EXPECT_GE(spectrum.bound_beyond(r), svd.singularValues()(r) * (1 - 1e-14));
      EXPECT_LE(spectrum.bound_beyond(r), svd.singularValues()(r) + 1e-6 * svd.singularValues()(0));
    }
    EXPECT_EQ(spectrum.bound_beyond(n), 0);
    const RowMatrix turn = svd.matrixU() * svd.matrixV().transpose();
    spectrum.compute(turn, 1e-12);
    EXPECT_LE(spectrum.misfit(svd.matrixU(), svd.matrixV()), 1e-11);
    EXPECT_GE(spectrum.misfit(svd.matrixU(), -svd.matrixV()), 1.9);
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
    nuclear(problem);
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
  nuclear(problem);
  // An interior point method leaves all multipliers nonzero, so they do not tell which rows matter.
  MarginSolution frobenius = proven(problem);
  frobenius.dual.array() += 1e-9;
  NuclearSolver solver;
  EXPECT_EQ(solver.solve(problem, frobenius, 1e-8, [](const SolveProgress&) { return false; }),
            NuclearSolver::Outcome::converged);
}

TEST(FaceBlocks, DependentRowsHaveABoundedInverse) {
  const Index size = 40, d = 6;
  const RowMatrix rows = RowMatrix::Random(size, d);
  const RowMatrix gram = (rows * rows.transpose()).cast<float>().cast<double>();
  const std::vector<std::uint8_t> all(static_cast<std::size_t>(size), 1);
  BlockScratch scratch;
  RowMatrix inverse(size, size);
  invert_face_block(gram.data(), size, all.data(), scratch, inverse.data());
  EXPECT_LE(inverse.cwiseAbs().maxCoeff(), 1e7);
}

}  // namespace
}  // namespace attsvm
