#include "base/kernels/vector_exp.h"

#include <limits>

#include "base/kernels/kernel_support.h"
#include "base/random.h"

namespace attsvm {
namespace {

using test::for_every_target;
using test::Numbers;

/// In units of 2^-53 of e^x.
double error_of(double computed, double x) {
  const long double truth = std::exp(static_cast<long double>(x));
  return static_cast<double>(std::abs((computed - truth) / truth)) * 0x1p53;
}

TEST(VectorExp, RightToTheLastBitOrTwo) {
  const Random random(3, 0, 0);
  for_every_target([&] {
    for (const double range : {1e-8, 1.0, 40.0, 707.0}) {
      double worst = 0;
      std::vector<double> x(10'001);
      for (std::size_t k = 0; k < x.size(); ++k) x[k] = -range * random.uniform(k);
      std::vector<double> y = x;
      exp_nonpositive(y.data(), static_cast<Index>(y.size()));
      for (std::size_t k = 0; k < x.size(); ++k) worst = std::max(worst, error_of(y[k], x[k]));
      EXPECT_LT(worst, 1.6) << range;
    }
  });
}

TEST(VectorExp, Edges) {
  for_every_target([] {
    std::vector<double> x{0, -0.0, -708, -708.5, -1e300, -std::numeric_limits<double>::infinity()};
    exp_nonpositive(x.data(), 6);
    EXPECT_LT(error_of(x[2], -708), 1.6);
    x.erase(x.begin() + 2);
    EXPECT_EQ(x, (std::vector<double>{1, 1, 0, 0, 0}));
  });
}

TEST(VectorExp, SameBitsWhereverANumberStands) {
  for_every_target([] {
    for (Index count = 0; count <= 70; ++count) {
      Numbers x(count, 4);
      for (Index k = 0; k < count; ++k) x[k] = -30 * std::abs(x[k]);
      std::vector<double> alone = x.copy();
      for (double& number : alone) exp_nonpositive(&number, 1);
      exp_nonpositive(x.data(), count);
      EXPECT_EQ(x.copy(), alone) << count;
    }
  });
}

}  // namespace
}  // namespace attsvm
