// Products with rows in double and in extended precision, which share no code, and both against dense rows.
#include "margin/power/outer_rows.h"

#include <Eigen/QR>
#include <random>

#include "linear_algebra.h"
#include "margin/power/axes.h"
#include "support.h"

namespace attsvm {
namespace {

using internal::Axes;
using internal::OuterRows;
using internal::PowerColumns;
using internal::PowerMatrix;
using internal::PowerVector;

struct Sizes {
  Index d, dz;
  bool turned;
};
const std::vector<Sizes> kSizes{{.d = 5, .dz = 3, .turned = false},
                                {.d = 3, .dz = 7, .turned = true},
                                {.d = 4, .dz = 4, .turned = false},
                                {.d = 9, .dz = 1, .turned = false}};
const std::vector<Index> kQuery{0, 0, 0, 1, 2, 2, 2, 2, 2, 3};

struct Drawn {
  explicit Drawn(const Sizes& sizes, std::uint64_t seed = 1)
      : random(seed), size(sizes), u(draw(10, sizes.d)), v(draw(4, sizes.dz)) {
    rows.resize(10, sizes.d * sizes.dz);
    for (Index k = 0; k < 10; ++k) {
      const auto zeta = v.row(kQuery[static_cast<std::size_t>(k)]);
      const RowMatrix row =
          sizes.turned ? RowMatrix(zeta.transpose() * u.row(k)) : RowMatrix(u.row(k).transpose() * zeta);
      rows.row(k) = Eigen::Map<const Eigen::RowVectorXd>(row.data(), row.size());
    }
  }
  RowMatrix draw(Index m, Index n) { return test::gaussian(m, n, random); }
  Index left() const { return size.turned ? size.dz : size.d; }
  Index right() const { return size.turned ? size.d : size.dz; }

  std::mt19937_64 random;
  Sizes size;
  RowMatrix u, v, rows;
};

template <class Real>
void expect_products(const Drawn& drawn, const RowMatrix& rows, const OuterRows<Real>& products) {
  std::mt19937_64 random(7);
  const Index count = rows.rows(), unknowns = rows.cols(), corner = std::min(drawn.left(), drawn.right());
  const Eigen::VectorXd W = test::gaussian(unknowns, 1, random), x = test::gaussian(count, 1, random);
  PowerVector<Real> found;
  products.values(W.cast<Real>(), found);
  EXPECT_LE((found.template cast<double>() - rows * W).norm(), 1e-13);
  products.weigh(x.cast<Real>(), found);
  EXPECT_LE((found.template cast<double>() - rows.transpose() * x).norm(), 1e-13);
  const Eigen::VectorXd F = test::gaussian(unknowns, 1, random);
  Eigen::MatrixXd C = test::gaussian(corner, corner, random);
  C = (C + C.transpose()).eval();
  PowerColumns<Real> G, wide_C = C.cast<Real>();
  for (const bool crossed : {false, true}) {
    products.gram(F.cast<Real>(), crossed ? &wide_C : nullptr, G);
    for (Index l = 0; l < count; ++l) {
      for (Index k = l; k < count; ++k) {
        double sum = 0;
        for (Index i = 0; i < drawn.left(); ++i) {
          for (Index j = 0; j < drawn.right(); ++j) {
            const double m = rows(k, i * drawn.right() + j);
            sum += F(i * drawn.right() + j) * m * rows(l, i * drawn.right() + j);
            if (crossed && i < corner && j < corner) sum += C(i, j) * m * rows(l, j * drawn.right() + i);
          }
        }
        EXPECT_NEAR(static_cast<double>(G(k, l)), sum, 1e-12) << k << " " << l << " crossed " << crossed;
      }
    }
  }
}

/// One set of objects for all sizes, because they keep their memory.
template <class Real>
struct Tools {
  OuterRows<Real> products, rotated;
  Axes<Real> axes;
};

template <class Real>
void expect_all_products(const Sizes& sizes, Tools<Real>& tools) {
  SCOPED_TRACE(testing::Message() << sizes.d << " by " << sizes.dz << (sizes.turned ? ", turned" : ""));
  Drawn drawn(sizes);
  auto& [products, rotated, axes] = tools;
  products.load(drawn.u.cast<Real>(), drawn.v.cast<Real>(), kQuery.data(), sizes.turned);
  expect_products(drawn, drawn.rows, products);
  const auto orthogonal = [&](Index n) {
    return RowMatrix(Eigen::HouseholderQR<Eigen::MatrixXd>(drawn.draw(n, n)).householderQ());
  };
  const RowMatrix U = orthogonal(drawn.left()), V = orthogonal(drawn.right());
  const PowerMatrix<Real> wide_U = U.cast<Real>(), wide_V = V.cast<Real>();
  rotated.rotate(products, sizes.turned ? wide_V : wide_U, sizes.turned ? wide_U : wide_V);
  axes.set(wide_U, wide_V);
  RowMatrix turned_rows = drawn.rows;
  for (Index k = 0; k < drawn.rows.rows(); ++k) {
    const RowMatrix row = Eigen::Map<const RowMatrix>(drawn.rows.row(k).data(), drawn.left(), drawn.right());
    const RowMatrix turned = U.transpose() * row * V;
    turned_rows.row(k) = Eigen::Map<const Eigen::RowVectorXd>(turned.data(), turned.size());
    const PowerVector<Real> given = drawn.rows.row(k).transpose().cast<Real>();
    PowerVector<Real> there(given.size()), back(given.size());
    axes.into(given.data(), there.data());
    axes.out_of(there.data(), back.data());
    EXPECT_LE((there.template cast<double>() - turned_rows.row(k).transpose()).norm(), 1e-13);
    EXPECT_LE(static_cast<double>((back - given).norm()), 1e-13);
  }
  expect_products(drawn, turned_rows, rotated);
}

TEST(OuterRows, InDouble) {
  Tools<double> tools;
  for (const Sizes& sizes : kSizes) expect_all_products(sizes, tools);
}

TEST(OuterRows, InExtendedPrecision) {
  Tools<long double> tools;
  for (const Sizes& sizes : kSizes) expect_all_products(sizes, tools);
}

}  // namespace
}  // namespace attsvm
