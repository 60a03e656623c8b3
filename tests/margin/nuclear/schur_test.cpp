#include "margin/nuclear/schur.h"

#include <numeric>

#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

/// A symmetric, positive definite matrix.
Eigen::MatrixXd definite(Index n, std::mt19937_64& engine) {
  const Eigen::MatrixXd half = test::gaussian(n, n, engine);
  return half * half.transpose() / static_cast<double>(n) + Eigen::MatrixXd::Identity(n, n);
}

/// The rows of a problem, and δζᵀ of each read as a symmetric matrix.
struct Rows {
  explicit Rows(const Recipe& recipe) : task(test::separable(recipe)), problem(test::selected(task)) {
    rows.load(problem, 1);
    for (Index k = 0; k < rows.count(); ++k) list.push_back(k);
  }
  Index size() const { return rows.left() + rows.right(); }
  Eigen::VectorXd delta(Index k) const { return Eigen::Map<const Eigen::VectorXd>(rows.delta(k), rows.left()); }
  Eigen::VectorXd zeta(Index k) const {
    return Eigen::Map<const Eigen::VectorXd>(rows.zeta(rows.query(k)), rows.right());
  }
  Eigen::MatrixXd symmetric(Index k) const {
    Eigen::MatrixXd a = Eigen::MatrixXd::Zero(size(), size());
    a.topRightCorner(rows.left(), rows.right()) = delta(k) * zeta(k).transpose();
    a.bottomLeftCorner(rows.right(), rows.left()) = zeta(k) * delta(k).transpose();
    return a;
  }
  /// M_kl = factor·½⟨a_k, X a_l T + T a_l X⟩ for the rows of `list`
  Eigen::MatrixXd definition(const Eigen::MatrixXd& X, const Eigen::MatrixXd& T, double factor) const {
    const auto n = static_cast<Index>(list.size());
    Eigen::MatrixXd M(n, n);
    for (Index l = 0; l < n; ++l) {
      const Eigen::MatrixXd a = symmetric(list[static_cast<std::size_t>(l)]), both = X * a * T + T * a * X;
      for (Index k = 0; k < n; ++k)
        M(k, l) = factor / 2 * symmetric(list[static_cast<std::size_t>(k)]).cwiseProduct(both).sum();
    }
    return M;
  }

  AttentionTask task;
  MarginProblem problem;
  NuclearRows rows;
  std::vector<Index> list;
};

TEST(NuclearSchur, IsTheMatrixOfItsDefinition) {
  std::mt19937_64 engine(1);
  for (const Recipe& recipe : {Recipe{.n = 1, .T = 2, .d = 3}, Recipe{.n = 4, .T = 5, .d = 6, .dz = 3},
                               Recipe{.n = 5, .T = 4, .d = 9, .dz = 9, .shortest = 2}}) {
    Rows r(recipe);
    const Eigen::MatrixXd X = definite(r.size(), engine), T = definite(r.size(), engine);
    const Eigen::VectorXd diagonal = Eigen::VectorXd::LinSpaced(r.rows.count(), 0.1, 2);
    for (const bool some : {false, true}) {
      if (some) {
        r.list.clear();
        for (Index k = 0; k < r.rows.count(); k += 2) r.list.push_back(k);
      }
      const auto n = static_cast<Index>(r.list.size());
      for (const bool alike : {false, true}) {
        const Eigen::MatrixXd& left = alike ? T : X;
        NuclearSchur schur;
        schur.choose(r.rows, some ? r.list.data() : nullptr, n);
        schur.build(left, T, 0.7, diagonal.data());
        schur.mirror();
        Eigen::MatrixXd M = r.definition(left, T, 0.7);
        M.diagonal() += diagonal.head(n);
        for (Index l = 0; l < n; ++l) {
          EXPECT_NEAR(schur.matrix()[l * (schur.ld() + 1)], 1, 1e-14);
          for (Index k = 0; k < n; ++k)
            EXPECT_NEAR(schur.matrix()[l * schur.ld() + k], M(k, l) * schur.scale(k) * schur.scale(l), 1e-13);
        }
      }
    }
  }
}

TEST(NuclearSchur, Solves) {
  std::mt19937_64 engine(2);
  for (const Index n : {3, 12, 50}) {  // the last has enough rows for OpenBLAS
    Rows r({.n = n, .T = 5, .d = 16, .dz = 14});
    const Index count = r.rows.count();
    EXPECT_EQ(count >= NuclearSchur::kBlasRows, n == 50);
    const Eigen::MatrixXd X = definite(r.size(), engine), T = definite(r.size(), engine);
    const Eigen::VectorXd diagonal = Eigen::VectorXd::Constant(count, 0.5);
    NuclearSchur schur;
    schur.choose(r.rows, nullptr, count);
    schur.build(X, T, 1, diagonal.data());
    schur.factor(1e-12);
    const Eigen::VectorXd b = test::gaussian(count, 1, engine);
    Eigen::VectorXd x = b;
    schur.solve(x.data());
    Eigen::MatrixXd M = r.definition(X, T, 1);
    M.diagonal() += diagonal;
    EXPECT_LE((M * x - b).norm(), 1e-11 * b.norm()) << n;
  }
}

TEST(NuclearSchur, RowsThatDependOnOthersGetZero) {
  std::mt19937_64 engine(3);
  Rows r({.n = 2, .T = 4, .d = 5, .dz = 3});
  const std::vector<Index> twice{0, 1, 1, 2};
  const Eigen::MatrixXd T = definite(r.size(), engine);
  NuclearSchur schur;
  schur.choose(r.rows, twice.data(), 4);
  schur.build(T, T, 1, nullptr);
  schur.factor(1e-11);
  Eigen::VectorXd x = Eigen::VectorXd::Ones(4);
  schur.solve(x.data());
  EXPECT_EQ(x(2), 0);
  r.list = {0, 1, 2};
  Eigen::VectorXd others(3);
  others << x(0), x(1), x(3);
  const Eigen::VectorXd values = r.definition(T, T, 1) * others;
  for (Index k = 0; k < 3; ++k) EXPECT_NEAR(values(k), 1, 1e-12);
}

TEST(NuclearSchur, SolvesOnAFace) {
  std::mt19937_64 engine(4);
  for (const auto& [n, rank] : {std::pair<Index, Index>{3, 1}, {6, 2}, {6, 3}, {50, 3}}) {
    SCOPED_TRACE(testing::Message() << n << " queries, rank " << rank);
    Rows r({.n = n, .T = 5, .d = 16, .dz = 14});
    const Index count = r.rows.count(), P = r.rows.left(), Q = r.rows.right();
    const Eigen::MatrixXd U = test::orthonormal(test::gaussian(P, rank, engine));
    const Eigen::MatrixXd V = test::orthonormal(test::gaussian(Q, rank, engine));
    const Eigen::VectorXd sigma = Eigen::VectorXd::LinSpaced(rank, 2, 0.5);
    const Eigen::MatrixXd T = definite(P + Q, engine);
    NuclearSchur schur;
    schur.choose(r.rows, nullptr, count);
    schur.build_on_face(U, V, sigma, T);
    ASSERT_TRUE(schur.factor_on_face(1e-12));
    const Eigen::VectorXd b = test::gaussian(count, 1, engine);
    const Eigen::MatrixXd target = test::gaussian(rank, rank, engine);
    Eigen::VectorXd x = b;
    Eigen::MatrixXd Y = target;
    schur.solve_on_face(x.data(), Y);
    EXPECT_EQ(Y, Y.transpose());
    Eigen::MatrixXd both(P + Q, rank);
    both << U, V;
    const Eigen::MatrixXd M = r.definition(both * sigma.asDiagonal() * both.transpose(), T, 1);
    Eigen::VectorXd values = M * x;
    Eigen::MatrixXd block = Eigen::MatrixXd::Zero(rank, rank);
    for (Index k = 0; k < count; ++k) {
      const Eigen::MatrixXd seen = (U.transpose() * r.delta(k)) * (V.transpose() * r.zeta(k)).transpose();
      values(k) += seen.cwiseProduct(Y).sum();
      block += x(k) * seen;
    }
    const double size = x.norm() + Y.norm();
    EXPECT_LE((values - b).norm(), 1e-10 * size);
    EXPECT_LE((block + block.transpose() - target - target.transpose()).norm(), 1e-10 * size);
  }
}

TEST(NuclearSchur, AFaceThatRowsDoNotDetermineIsNoticed) {
  std::mt19937_64 engine(5);
  Rows r({.n = 1, .T = 3, .d = 8, .dz = 8});  // two rows for the three numbers of a symmetric block of rank two
  const Eigen::MatrixXd U = test::orthonormal(test::gaussian(r.rows.left(), 2, engine));
  const Eigen::MatrixXd V = test::orthonormal(test::gaussian(r.rows.right(), 2, engine));
  NuclearSchur schur;
  schur.choose(r.rows, nullptr, r.rows.count());
  schur.build_on_face(U, V, Eigen::Vector2d(2, 1), definite(r.size(), engine));
  EXPECT_FALSE(schur.factor_on_face(1e-12));
}

}  // namespace
}  // namespace attsvm
