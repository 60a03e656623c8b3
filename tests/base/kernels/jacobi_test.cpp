#include "base/kernels/jacobi.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <random>

#include "base/decompositions.h"
#include "base/kernels/dense.h"
#include "base/kernels/kernel_support.h"
#include "linear_algebra.h"

namespace attsvm {
namespace {

using test::for_every_target;
using test::Numbers;

using Wide = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

TEST(JacobiKernels, ColumnsBecomeOrthogonal) {
  for_every_target([] {
    for (const Index rows : {1, 2, 4, 5, 10, 23}) {
      for (Index count = 1; count <= rows; count += 3) {
        SCOPED_TRACE(testing::Message() << rows << " by " << count);
        const Index tall = pad4(rows), stride = tall + pad4(count);
        Numbers columns(stride * count, 1);
        Wide A = Wide::Zero(rows, count), V(count, count), AV(rows, count);
        for (Index j = 0; j < count; ++j) {
          for (Index i = 0; i < stride; ++i) {
            double& number = columns[j * stride + i];
            if (i < rows) {
              A(i, j) = number;
            } else {
              number = i == tall + j ? 1 : 0;
            }
          }
        }
        ASSERT_TRUE(internal::orthogonalize(columns.data(), stride, tall, count));
        for (Index j = 0; j < count; ++j) {
          for (Index i = 0; i < rows; ++i) AV(i, j) = columns[j * stride + i];
          for (Index i = 0; i < count; ++i) V(i, j) = columns[j * stride + tall + i];
        }
        EXPECT_LE((V.transpose() * V - Wide::Identity(count, count)).norm(), 1e-14L * count);
        EXPECT_LE((A * V - AV).norm(), 1e-14L * A.norm() * count);
        for (Index p = 0; p < count; ++p) {
          for (Index q = 0; q < p; ++q)
            EXPECT_LE(std::abs(AV.col(p).dot(AV.col(q))), 1e-14L * AV.col(p).norm() * AV.col(q).norm())
                << p << " " << q;
        }
      }
    }
  });
}

TEST(JacobiKernels, NearlyOrthogonalColumnsOfOneLength) {
  // Their turns are large, however small their cosines are.
  std::mt19937_64 random(2);
  for_every_target([&] {
    for (const Index n : {6, 10, 20}) {
      for (const double off : {1e-6, 1e-8, 1e-9, 1e-12, 1e-15, 0.0}) {
        SCOPED_TRACE(testing::Message() << n << ", off by " << off);
        const Eigen::MatrixXd A = Eigen::HouseholderQR<Eigen::MatrixXd>(test::gaussian(n, n, random)).householderQ();
        const Eigen::MatrixXd given = A + off * test::gaussian(n, n, random);
        Eigen::MatrixXd columns = Eigen::MatrixXd::Zero(pad4(n), n);
        columns.topRows(n) = given;
        ASSERT_TRUE(internal::orthogonalize(columns.data(), pad4(n), pad4(n), n));
        const Wide gram = columns.cast<long double>().transpose() * columns.cast<long double>();
        EXPECT_LE((gram - Wide(gram.diagonal().asDiagonal())).cwiseAbs().maxCoeff(), 1e-14L);
        const auto expected = Eigen::JacobiSVD<Wide>(given.cast<long double>()).singularValues();
        const Eigen::VectorXd found = internal::singular_values(given);
        for (Index i = 0; i < n; ++i) EXPECT_NEAR(found(i), static_cast<double>(expected(i)), 1e-14);
      }
    }
  });
}

TEST(JacobiKernels, NoNumberIsNoSingularValue) {
  for (Index at = 0; at < 9; ++at) {
    Eigen::MatrixXd A = Eigen::MatrixXd::Identity(3, 3);
    A.data()[at] = std::nan("");
    EXPECT_FALSE(internal::singular_values(A).allFinite() && internal::singular_values(A).sum() == 3) << at;
  }
}

TEST(JacobiKernels, SingularValuesOfAnyShape) {
  std::mt19937_64 random(3);
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {7, 3}, {3, 7}, {10, 10}, {1, 9}, {23, 23}}) {
    const Eigen::MatrixXd A = test::gaussian(rows, columns, random);
    for (const double scale : {1.0, 1e-140, 1e140, 0.0}) {
      const Eigen::MatrixXd scaled = scale * A;
      const Eigen::VectorXd found = internal::singular_values(scaled);
      const auto expected = Eigen::JacobiSVD<Wide>(A.cast<long double>()).singularValues();
      ASSERT_EQ(found.size(), std::min(rows, columns));
      EXPECT_TRUE(std::is_sorted(found.begin(), found.end(), std::greater<>()));
      for (Index i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found(i), scale * static_cast<double>(expected(i)),
                    1e-14 * scale * static_cast<double>(expected(0)));
    }
  }
}

TEST(JacobiKernels, GradedColumnsKeepTheirSmallValues) {
  std::mt19937_64 random(4);
  Eigen::MatrixXd A = test::gaussian(9, 5, random);
  for (Index j = 0; j < 5; ++j) A.col(j) *= std::pow(1e-20, j);
  const Eigen::VectorXd found = internal::singular_values(A);
  const Wide R = A.cast<long double>().householderQr().matrixQR();
  long double ratio = 1;  // the product of all values is |det R|
  for (Index i = 0; i < 5; ++i) ratio *= static_cast<long double>(found(i)) / std::abs(R(i, i));
  EXPECT_NEAR(static_cast<double>(ratio), 1, 1e-13);
}

}  // namespace
}  // namespace attsvm
