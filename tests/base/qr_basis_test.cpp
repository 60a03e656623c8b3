#include "base/qr_basis.h"

#include <random>

#include "base/kernels/dense.h"
#include "linear_algebra.h"
#include "support.h"

namespace attsvm {
namespace {

constexpr double kClose = 1e-13;

/// A basis and the vectors that it stands for, each a column of `A`.
struct Pair {
  explicit Pair(Index dimension) : A(dimension, 0) { basis.reset(dimension); }
  void push(const Eigen::VectorXd& a) {
    basis.project(a.data());
    basis.push();
    A.conservativeResize(Eigen::NoChange, A.cols() + 1);
    A.col(A.cols() - 1) = a;
  }
  void drop(Index j) {
    basis.drop(j);
    const Eigen::MatrixXd old = A;
    A.resize(old.rows(), old.cols() - 1);
    A << old.leftCols(j), old.rightCols(old.cols() - 1 - j);
  }
  Eigen::MatrixXd Q() const { return Eigen::Map<const Eigen::MatrixXd>(basis.q(0), A.rows(), A.cols()); }

  /// QᵀQ = I, and R⁻¹ and R⁻ᵀ are those of A = QR: A R⁻¹x = Qx, and R⁻ᵀAᵀy = Qᵀy.
  void check() const {
    const Index n = A.cols();
    ASSERT_EQ(basis.size(), n);
    if (n == 0) return;
    EXPECT_LE((Q().transpose() * Q() - Eigen::MatrixXd::Identity(n, n)).cwiseAbs().maxCoeff(), kClose);
    const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(n, -1, 2), y = Eigen::VectorXd::LinSpaced(A.rows(), 1, -2);
    Eigen::VectorXd solved = x;
    basis.solve(solved.data());
    EXPECT_LE((A * solved - Q() * x).norm(), kClose * (1 + solved.norm()) * A.norm()) << n;
    Eigen::VectorXd transposed = A.transpose() * y;
    basis.solve_transposed(transposed.data());
    EXPECT_LE((transposed - Q().transpose() * y).norm(), kClose * A.norm() * y.norm()) << n;
    const Index from = n / 2;  // the first half is done already
    Eigen::VectorXd rest = A.transpose() * y;
    rest.head(from) = transposed.head(from);
    basis.solve_transposed(rest.data(), from);
    EXPECT_EQ(rest, transposed) << n;
  }

  QrBasis basis;
  Eigen::MatrixXd A;
};

TEST(QrBasis, FactorsAGrowingList) {
  std::mt19937_64 engine(1);
  for (const Index dimension : {4, 8, 20, 72}) {
    Pair pair(dimension);
    pair.check();
    for (Index n = 0; n < dimension; ++n) {
      pair.push(test::gaussian(dimension, 1, engine));
      pair.check();
    }
  }
}

TEST(QrBasis, SplitsAVectorIntoItsSpanAndTheRest) {
  std::mt19937_64 engine(2);
  Pair pair(12);
  const Eigen::VectorXd first = test::gaussian(12, 1, engine);
  EXPECT_NEAR(pair.basis.project(first.data()), first.norm(), kClose);
  for (Index n = 0; n < 7; ++n) pair.push(test::gaussian(12, 1, engine));
  const Eigen::VectorXd a = test::gaussian(12, 1, engine), inside = pair.Q().transpose() * a;
  EXPECT_NEAR(pair.basis.project(a.data()), (a - pair.Q() * inside).norm(), kClose);
  EXPECT_LE((Eigen::Map<const Eigen::VectorXd>(pair.basis.coefficients(), 7) - inside).norm(), kClose);
  const Eigen::VectorXd dependent = pair.A * Eigen::VectorXd::LinSpaced(7, -1, 1);
  EXPECT_LE(pair.basis.project(dependent.data()), 1e-15 * dependent.norm());
}

TEST(QrBasis, StaysOrthonormalWhereVectorsNearlyDepend) {
  std::mt19937_64 engine(3);
  for (const double apart : {1e-4, 1e-8, 1e-11}) {
    Pair pair(16);
    pair.push(test::gaussian(16, 1, engine));
    for (Index n = 1; n < 6; ++n) pair.push(pair.A.col(0) + apart * test::gaussian(16, 1, engine));
    EXPECT_LE((pair.Q().transpose() * pair.Q() - Eigen::MatrixXd::Identity(6, 6)).cwiseAbs().maxCoeff(), kClose);
  }
}

TEST(QrBasis, DropsAnyVector) {
  std::mt19937_64 engine(4);
  for (Index n = 1; n <= 19; ++n) {  // more than the 16 that it has room for at first
    for (Index j = 0; j < n; ++j) {
      Pair pair(20);
      for (Index k = 0; k < n; ++k) pair.push(test::gaussian(20, 1, engine));
      pair.drop(j);
      pair.check();
      pair.push(test::gaussian(20, 1, engine));
      pair.check();
    }
  }
}

}  // namespace
}  // namespace attsvm
