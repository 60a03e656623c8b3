#include "base/spectrum.h"

#include <cmath>

#include "linear_algebra.h"
#include "support.h"

namespace attsvm {
namespace {

TEST(Spectrum, BoundIsAboveTheNormByLittle) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {3, 7}, {20, 20}, {150, 120}}) {
    const RowMatrix A = RowMatrix::Random(rows, columns);
    const double norm = test::svd_of(A).sigma(0);
    Spectrum spectrum;
    for (const double slack : {1e-10, 1e-14}) {
      spectrum.compute(A, slack);
      EXPECT_GE(spectrum.bound(), norm * (1 - 1e-15));
      EXPECT_LE(spectrum.bound(), norm * (1 + (rows <= 20 ? slack : 1e-10)));
      EXPECT_NEAR(spectrum.values()(0), norm, 1e-13 * norm);
    }
    spectrum.compute(A * 1e-300, 1e-10);
    EXPECT_NEAR(spectrum.bound(), norm * 1e-300, 1e-10 * norm * 1e-300);
  }
}

TEST(Spectrum, BoundIsNeverBelowTheNorm) {
  RowMatrix H{{1}};
  for (int doubling = 0; doubling < 5; ++doubling) {  // Hadamard: ‖H‖ = √n, exact if that is a power of two
    Spectrum spectrum;
    const auto n = static_cast<double>(H.rows());
    for (const double slack : {1e-10, 1e-16}) {
      spectrum.compute(H * 0.75, slack);
      EXPECT_GE(spectrum.bound() * spectrum.bound() / 0.5625, n) << n;
      if (doubling % 2 == 0) {
        EXPECT_GE(spectrum.bound(), 0.75 * std::sqrt(n)) << n;
      }
    }
    const RowMatrix half = H;
    H.resize(2 * half.rows(), 2 * half.cols());
    H << half, half, half, -half;
  }
}

TEST(Spectrum, BoundsBeyondTheFirstSingularValues) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {3, 7}, {20, 20}, {70, 60}}) {
    const RowMatrix A = RowMatrix::Random(rows, columns);
    const test::Svd svd = test::svd_of(A);
    Spectrum spectrum;
    spectrum.compute(A, 1e-12);
    const Index n = std::min(rows, columns);
    for (Index r = 0; r < n; ++r) {
      EXPECT_GE(spectrum.bound_beyond(r), svd.sigma(r) * (1 - 1e-14));
      EXPECT_LE(spectrum.bound_beyond(r), svd.sigma(r) + 1e-6 * svd.sigma(0));
    }
    EXPECT_EQ(spectrum.bound_beyond(n), 0);
    const RowMatrix turn = svd.U * svd.V.transpose();
    spectrum.compute(turn, 1e-12);
    EXPECT_LE(spectrum.misfit(svd.U, svd.V), 1e-11);
    EXPECT_GE(spectrum.misfit(svd.U, -svd.V), 1.9);
  }
}

}  // namespace
}  // namespace attsvm
