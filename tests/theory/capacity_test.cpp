// Which sizes separate random selections.
#include "attsvm/capacity.h"

#include <Eigen/QR>
#include <cmath>

#include "support.h"
#include "theory/capacity_draws.h"
#include "theory/claim_tools.h"
#include "theory/row_dimension.h"

namespace attsvm {
namespace {

using namespace internal;

TEST(RowDimension, FacesOfProjectionsMeetTheirConditions) {
  const Random random(3, 0, 0);
  for (std::uint64_t k = 0; k < 50; ++k) {
    Eigen::MatrixXd A(4, 7);
    Eigen::VectorXd g(4);
    random.normals({A.data(), 28}, 100 * k);
    random.normals({g.data(), 4}, 100 * k + 50);
    // Enumerate all faces: exactly one has multipliers > 0 and no column that pulls the rest.
    Index faces = 0, size = -1;
    for (unsigned set = 0; set < 128; ++set) {
      std::vector<Index> chosen;
      for (Index c = 0; c < 7; ++c) {
        if ((set >> c) & 1U) chosen.push_back(c);
      }
      if (chosen.size() > 4) continue;
      Eigen::VectorXd rest = g;
      bool inside = true;
      if (!chosen.empty()) {
        const Eigen::MatrixXd columns = A(Eigen::all, chosen);
        const Eigen::VectorXd fit = columns.colPivHouseholderQr().solve(g);
        rest -= columns * fit;
        inside = fit.minCoeff() > 0;
      }
      if (!inside || (A.transpose() * rest).maxCoeff() > 1e-9) continue;
      if (rest.norm() < 1e-9) continue;  // g is in the cone: several faces may hold it
      ++faces;
      size = static_cast<Index>(chosen.size());
    }
    if (faces == 0) {
      EXPECT_EQ(projection_face(A, g), 4) << "g is inside the cone";
    } else {
      ASSERT_EQ(faces, 1);
      EXPECT_EQ(projection_face(A, g), size);
    }
  }
}

TEST(RowDimension, ThreeTokensTakeFiveSixthsAndTheLawIsCoversForTwo) {
  Threads threads(2);
  const std::vector<double> law = dimension_law(3, 200, 1, threads);  // angles of 60° in many dimensions
  EXPECT_NEAR(mean_dimension(law), 5.0 / 6, 0.05);
  EXPECT_EQ(dimension_law(3, 200, 1, threads), law);
  // Cover: 2^{1−N} Σ_{k<D} C(N−1,k)
  for (const auto& [N, D] : {std::pair{10, 3}, {10, 5}, {24, 12}, {7, 7}, {40, 3}}) {
    double sum = 0, binomial = 1;
    for (int k = 0; k < D && k < N; ++k) {
      sum += binomial;
      binomial *= static_cast<double>(N - 1 - k) / (k + 1);
    }
    EXPECT_NEAR(separable_chance({0.5, 0.5}, N, D), std::min(1.0, std::ldexp(sum, 1 - N)), 1e-12);
  }
  EXPECT_NEAR(separable_chance({0.5, 0.5}, 100'000, 50'000), 0.5, 0.01);  // by the normal law
}

TEST(Capacity, CountsWhatVerifiedSolvesSay) {
  Threads threads(2);
  const CapacitySettings settings{.n = 14, .T = 4, .d = 4, .width = 3, .heads = 2, .draws = 40, .runs = 4, .wanted = 0};
  const Capacity found = capacity(settings, threads);
  EXPECT_TRUE(found.complete);
  EXPECT_EQ(found.rows, 42);
  EXPECT_EQ(found.unknowns, 16);
  const auto tasks = draw_selections({.n = 14, .T = 4, .d = 4}, {.count = 40}, threads);
  const auto problems = attention_problems(tasks, optimal_of(tasks));
  Index separable = 0, narrow = 0;
  for (const MarginSolution& one : solve_verified(problems, Norm::frobenius(), threads))
    separable += one.status == MarginStatus::optimal ? 1 : 0;
  for (const MarginSolution& one : solve_verified(problems, Norm::nuclear(), threads))
    narrow += one.status == MarginStatus::optimal && one.rank.rank <= 3 ? 1 : 0;
  EXPECT_GT(separable, 0);
  EXPECT_LT(separable, 40);
  EXPECT_EQ(found.separable.count, separable);
  EXPECT_EQ(found.separable.of, 40);
  EXPECT_EQ(found.fits_width.count, narrow);
  EXPECT_EQ(found.margin.count, separable);
  EXPECT_LE(found.all_heads.count, separable);
  EXPECT_EQ(found.global.of, 4);
  EXPECT_LE(found.separable.low, found.separable.value());
  // (nuc*/fro*)² is between 1 and the rank of the Frobenius solution.
  EXPECT_GE(found.rank_floor.least, 1 - 1e-9);
  EXPECT_LE(found.rank_floor.most, 4 + 1e-9);
  EXPECT_FALSE(found.smallest_d.has_value());
}

TEST(Capacity, SearchBracketsTheSmallestSizeForAnyNumberOfThreads) {
  Threads one(1), two(2);
  const CapacitySettings settings{.n = 12, .T = 4, .d = 4, .draws = 50, .runs = 0, .wanted = 0.8};
  const Capacity found = capacity(settings, one), again = capacity(settings, two);
  ASSERT_TRUE(found.smallest_d && found.smallest_d->complete);
  const CapacitySearch& search = *found.smallest_d;
  EXPECT_LE(search.low, search.high);
  EXPECT_EQ(again.smallest_d->low, search.low);
  EXPECT_EQ(again.smallest_d->high, search.high);
  EXPECT_EQ(again.separable.count, found.separable.count);
  EXPECT_EQ(again.margin.mean, found.margin.mean);
  for (const CapacityPoint& point : search.points) {
    if (point.d >= search.high) {
      EXPECT_GE(point.separable.low, 0.8);
    }
    if (point.d < search.low) {
      EXPECT_LT(point.separable.high, 0.8);
    }
  }
}

TEST(Capacity, KnowsWhatTheoryDecides) {
  const auto always = [](Index n, Index T, Index d, Index dz, QueryPattern pattern = QueryPattern::cross) {
    return always_separable({.n = n, .T = T, .d = d, .dz = dz, .pattern = pattern}).holds;
  };
  EXPECT_TRUE(always(6, 3, 4, 3));
  EXPECT_FALSE(always(7, 3, 4, 3));
  EXPECT_TRUE(always(3, 100, 2, 3));
  EXPECT_FALSE(always(3, 3, 1, 3));
  EXPECT_TRUE(always(3, 3, 6, 0, QueryPattern::prompt));
  EXPECT_FALSE(always(4, 3, 6, 0, QueryPattern::prompt));
  EXPECT_TRUE(always(5, 9, 5, 0, QueryPattern::self));
  EXPECT_FALSE(always(6, 9, 5, 0, QueryPattern::self));
}

TEST(Capacity, StopsWithTheCountsSoFar) {
  Threads threads(1);
  const Capacity found = capacity({.n = 4,
                                   .T = 3,
                                   .d = 4,
                                   .draws = 100,
                                   .progress =
                                       [&](const std::string& work, double share) {
                                         EXPECT_LT(share, 1);
                                         return work == "draws" && share > 0;
                                       }},
                                  threads);
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.separable.of, 32);
}

TEST(Capacity, StopsAmongTheProjectionsAndInTheMiddleOfADraw) {
  Threads threads(2);
  for (const std::string_view where : {"projections", "draws"}) {
    Index calls = 0;
    const auto progress = [&](const std::string& work, double) { return work == where && ++calls > 1; };
    const Capacity found = capacity({.n = 40, .T = 30, .d = 20, .draws = 1, .progress = progress}, threads);
    EXPECT_FALSE(found.complete);
    EXPECT_EQ(std::isnan(found.predicted), where == "projections") << where;
    EXPECT_EQ(found.separable.of, 0);
    EXPECT_FALSE(found.smallest_d);
  }
}

TEST(Capacity, PredictsChancesAroundTheSizeAndStopsThere) {
  Threads threads(2);
  CapacitySettings settings{
      .n = 3, .T = 8, .d = 9, .pattern = QueryPattern::prompt, .draws = 2, .runs = 0, .wanted = 0.9, .chances = true};
  const Capacity found = capacity(settings, threads);
  ASSERT_TRUE(found.complete);
  ASSERT_GE(found.chances.size(), 5U);
  EXPECT_LE(found.chances.size(), 24U);
  for (std::size_t k = 1; k < found.chances.size(); ++k) EXPECT_LT(found.chances[k - 1].d, found.chances[k].d);
  EXPECT_LE(found.chances.front().d, found.smallest_d->low);
  EXPECT_GE(found.chances.back().d, found.smallest_d->high);
  for (const PredictedChance& one : found.chances) {
    if (one.d == settings.d) {
      EXPECT_EQ(one.chance, found.predicted);
    }
  }
  Index calls = 0;
  settings.progress = [&](const std::string& work, double) { return work == "predicted chances" && ++calls > 1; };
  const Capacity stopped = capacity(settings, threads);
  EXPECT_GT(calls, 1);
  EXPECT_FALSE(stopped.complete);
  EXPECT_TRUE(stopped.chances.empty());
  EXPECT_EQ(stopped.separable.of, 2);
}

TEST(Capacity, RefusesSizesInOneLine) {
  Threads threads(1);
  const std::vector<std::pair<CapacitySettings, std::string>> wrong{
      {{.n = 0, .T = 3, .d = 4}, "n = 0"},
      {{.n = 3, .T = 1, .d = 4}, "T = 1"},
      {{.n = 3, .T = 3, .d = 0}, "d = 0"},
      {{.n = 3, .T = 3, .d = 4, .dz = 2, .pattern = QueryPattern::self}, "dz = 2"},
      {{.n = 3, .T = 3, .d = 4, .pattern = QueryPattern::causal}, "causal"},
      {{.n = 3, .T = 3, .d = 4, .width = 5}, "width = 5"},
      {{.n = 3, .T = 3, .d = 4, .heads = 0}, "heads = 0"},
      {{.n = 3, .T = 3, .d = 4, .draws = 5, .runs = 6}, "runs = 6"},
      {{.n = 3, .T = 3, .d = 4, .wanted = 1}, "wanted = 1"},
      {{.n = 10'000'000, .T = 10'000'000, .d = 10'000'000}, "numbers"}};
  for (const auto& [settings, words] : wrong) {
    try {
      capacity(settings, threads);
      ADD_FAILURE() << words;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace attsvm
