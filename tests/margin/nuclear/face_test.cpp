#include "margin/nuclear/face.h"

#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

/// A nuclear-norm problem, its optimum, and both in the units of the rows.
struct Solved {
  Solved(const Recipe& recipe, std::uint64_t seed)
      : task(test::separable(recipe, seed)),
        problem(test::selected(task)),
        optimum(test::proven(problem, {.norm = Norm::nuclear()})) {
    EXPECT_TRUE(optimum.rank.certified) << optimum.rank.words;
    rows.load(problem, optimum.W.norm());
    rows.weights_in(optimum.W, W);
    lambda.resize(rows.count());
    rows.duals_in(optimum.dual, lambda.data());
  }
  /// Multipliers and slacks of the active rows differ from zero by far more than this factor allows for.
  static constexpr double kBalance = 1;

  AttentionTask task;
  MarginProblem problem;
  MarginSolution optimum;
  NuclearRows rows;
  Eigen::MatrixXd W;
  Eigen::VectorXd lambda;
};

const std::vector<Recipe> kRecipes{
    {.n = 3, .T = 4, .d = 5, .dz = 4}, {.n = 6, .T = 8, .d = 10, .dz = 10}, {.n = 12, .T = 6, .d = 7, .dz = 9}};

/// Expects what `face` found to meet the conditions of an optimum: rows met, multipliers of one sign and only where a
/// row is met with equality, and A(λ) = UVᵀ + rest with ‖rest‖ ≤ 1, rest orthogonal to U and V.
void expect_optimal(Solved& s, const NuclearFace& face) {
  const Index r = face.sigma().size();
  const Eigen::MatrixXd one = Eigen::MatrixXd::Identity(r, r);
  EXPECT_LE((face.U().transpose() * face.U() - one).norm(), 1e-11);
  EXPECT_LE((face.V().transpose() * face.V() - one).norm(), 1e-11);
  EXPECT_GT(face.sigma().minCoeff(), 0);
  const Eigen::MatrixXd W = face.U() * face.sigma().asDiagonal() * face.V().transpose();
  std::vector<double> values(static_cast<std::size_t>(s.rows.count()));
  s.rows.values(W, values.data());
  for (Index k = 0; k < s.rows.count(); ++k) {
    const double slack = values[static_cast<std::size_t>(k)] - s.rows.rhs(k);
    EXPECT_GE(slack, -1e-11) << k;
    EXPECT_GE(face.lambda()[k], -1e-11) << k;
    EXPECT_TRUE(face.lambda()[k] == 0 || std::abs(slack) < 1e-11) << k;
  }
  Eigen::MatrixXd A;
  s.rows.weigh(face.lambda(), A);
  EXPECT_LE((A * face.V() - face.U()).norm(), 1e-10);
  EXPECT_LE((A.transpose() * face.U() - face.V()).norm(), 1e-10);
  EXPECT_LE(test::svd_of(A).sigma(0), 1 + 1e-10);
}

TEST(NuclearFace, ConvergesFromNearby) {
  std::mt19937_64 engine(1);
  for (const Recipe& recipe : kRecipes) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(testing::Message() << recipe.n << " queries, seed " << seed);
      Solved s(recipe, seed);
      const double off = 1e-4;
      const Eigen::MatrixXd W =
          s.W + off * s.W.norm() * test::orthonormal(test::gaussian(s.W.rows(), s.W.cols(), engine));
      const Eigen::VectorXd lambda = s.lambda * (1 + off);
      NuclearFace face;
      ASSERT_TRUE(face.solve(s.rows, W, lambda.data(), Solved::kBalance));
      EXPECT_EQ(face.sigma().size(), s.optimum.rank.rank);
      expect_optimal(s, face);
      const Eigen::MatrixXd found = face.U() * face.sigma().asDiagonal() * face.V().transpose();
      EXPECT_LE((found - s.W).norm(), 1e-9 * s.W.norm());
      EXPECT_LE(face.steps(), 6);
    }
  }
}

TEST(NuclearFace, StepsConvergeQuadratically) {
  Solved s(kRecipes[1], 1);
  Index before = 0;
  for (const double off : {1e-12, 1e-7, 1e-4}) {  // each is more than the root of the one before it
    const Eigen::VectorXd lambda = s.lambda * (1 + off);
    NuclearFace face;
    ASSERT_TRUE(face.solve(s.rows, s.W * (1 - off), lambda.data(), Solved::kBalance));
    EXPECT_LE(face.steps(), before + 1) << off;
    before = face.steps();
  }
}

TEST(NuclearFace, GivesUpWithoutMultipliers) {  // no singular value of W + A(λ) is above one
  Solved s(kRecipes[1], 1);
  const Eigen::VectorXd none = Eigen::VectorXd::Zero(s.lambda.size());
  NuclearFace face;
  EXPECT_FALSE(face.solve(s.rows, 1e-3 * s.W, none.data(), Solved::kBalance));
}

TEST(NuclearFace, WhatItAcceptsFromFarAwayIsOptimal) {
  std::mt19937_64 engine(2);
  Index accepted = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Solved s(kRecipes[0], seed);
    for (int repeat = 0; repeat < 8; ++repeat) {
      const Eigen::MatrixXd W = s.W.norm() * Eigen::MatrixXd(test::gaussian(s.W.rows(), s.W.cols(), engine));
      const Eigen::VectorXd lambda = Eigen::VectorXd(test::gaussian(s.lambda.size(), 1, engine)).cwiseAbs();
      NuclearFace face;
      if (face.solve(s.rows, W, lambda.data(), Solved::kBalance)) {
        expect_optimal(s, face);
        ++accepted;
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace attsvm
