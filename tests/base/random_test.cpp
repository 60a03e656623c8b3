#include "base/random.h"

#include <cmath>

#include "support.h"

namespace attsvm {
namespace {

// Known answers of the authors' Random123 library.
TEST(Random, PhiloxKnownAnswers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, QuantileInvertsTheDistribution) {
  for (double x = -8; x <= 5; x += 0.01) {
    const double p = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double slope = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    EXPECT_NEAR(normal_quantile(p), x, 1e-14 * (1 + std::abs(x)) + 4e-16 * p / slope) << x;
  }
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
}

TEST(Random, EveryPositionIsReachedDirectly) {
  const Random random(42, 7, 3);
  for (const std::uint64_t first : {0U, 1U, 5U, 1000U}) {
    std::vector<double> row(9);
    random.normals(row, first);
    for (std::size_t k = 0; k < row.size(); ++k) EXPECT_EQ(row[k], random.normal(first + k));
  }
}

TEST(Random, SeedInstanceAndStreamAllMatter) {
  const std::uint64_t base = Random(1, 2, 3).bits(4);
  EXPECT_NE(base, Random(2, 2, 3).bits(4));
  EXPECT_NE(base, Random(1ULL << 40 | 1, 2, 3).bits(4));
  EXPECT_NE(base, Random(1, 3, 3).bits(4));
  EXPECT_NE(base, Random(1, 2, 4).bits(4));
  EXPECT_NE(base, Random(1, 2, 3).bits(5));
}

TEST(Random, MomentsOfAMillionNormals) {
  std::vector<double> numbers(1'000'000);
  Random(5, 0, 0).normals(numbers);
  std::array<double, 5> moment{};
  for (const double x : numbers) {
    for (std::size_t k = 1; k < moment.size(); ++k) moment[k] += std::pow(x, static_cast<double>(k)) / 1e6;
  }
  EXPECT_NEAR(moment[1], 0, 5e-3);  // five standard errors
  EXPECT_NEAR(moment[2], 1, 7e-3);
  EXPECT_NEAR(moment[3], 0, 2e-2);
  EXPECT_NEAR(moment[4], 3, 5e-2);
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  const Random random(1, 0, 0);
  std::vector<int> seen(7, 0);
  for (std::uint64_t k = 0; k < 7000; ++k) ++seen.at(random.below(7, k));
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.below(1, 3), 0U);
}

}  // namespace
}  // namespace attsvm
