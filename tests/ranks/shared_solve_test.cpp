#include "margin/shared_solve.h"

#include <fmt/format.h>

#include <cstring>

#include "attsvm/generate.h"
#include "ranks/memory_wire.h"
#include "support.h"
#include "task/parts.h"

namespace attsvm {
namespace {

using namespace internal;
using test::on_ranks;

AttentionTask drawn(Index queries, Index d) {
  Recipe recipe;
  recipe.law = Law::separable;
  recipe.n = queries;
  recipe.T = 2;
  recipe.d = d;
  recipe.dz = d;
  recipe.rank = 3;
  return generate(recipe, 11).task;
}

/// solve_shared() on ranks that have the queries from cuts[k] to cuts[k+1]: what each finds, in their order.
std::vector<std::optional<MarginSolution>> solve_on_ranks(const AttentionTask& task, const std::vector<Index>& cuts,
                                                          const SolveSettings& settings, int threads) {
  std::vector<std::optional<MarginSolution>> found(cuts.size() - 1);
  on_ranks(static_cast<int>(found.size()), [&](Ranks& ranks) {
    Threads own(threads);
    const auto k = static_cast<std::size_t>(ranks.rank());
    const AttentionTask part(part_of(task, cuts[k], cuts[k + 1]));
    const SharedRows shared{.first = cuts[k],
                            .queries = task.queries(),
                            .together = [&](std::string here, const auto& merge, const auto& finish) {
                              return ranks.together(std::move(here), merge, finish);
                            }};
    const MarginProblem problem = MarginProblem::attention(part, *part.select());
    SolveSettings here = settings;
    if (!ranks.first()) here.iteration_limit = 0;  // rank 0 decides for all
    found[k] = solve_shared(problem, shared, here, own);
    return 0;
  });
  return found;
}

template <class Matrix>
bool same_bits(const Matrix& a, const Matrix& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 8) == 0;
}

TEST(SharedSolve, HasTheBitsOfOneProcess) {
  const AttentionTask task = drawn(4096, 64);  // four segments of 1,024 queries
  const MarginProblem problem = MarginProblem::attention(task, *task.select());
  for (const Norm& norm : {Norm::frobenius(), Norm::nuclear()}) {
    const SolveSettings settings{.norm = norm, .tolerance = 1e-4};
    Threads two(2);
    const MarginSolution one = solve(problem, settings, two);
    ASSERT_EQ(one.status, MarginStatus::optimal) << one.method;
    ASSERT_TRUE(verify(task, stored(problem, one, 1e-4), {.tolerance = 1e-4}).valid);
    for (const std::vector<Index>& cuts :
         {std::vector<Index>{0, 2048, 4096}, {0, 1024, 2048, 3072, 4096}, {0, 1024, 4096}}) {
      const auto found = solve_on_ranks(task, cuts, settings, 1 + static_cast<int>(cuts.size()) % 2);
      Index row = 0;
      for (const auto& part : found) {
        ASSERT_TRUE(part.has_value()) << norm.name() << " by " << one.method;
        EXPECT_EQ(part->status, one.status);
        EXPECT_EQ(part->method, one.method);
        EXPECT_EQ(part->iterations, one.iterations);
        EXPECT_TRUE(same_bits(part->W, one.W));
        EXPECT_TRUE(same_bits(part->K, one.K));
        EXPECT_EQ(part->objective, one.objective);
        EXPECT_EQ(part->dual_objective, one.dual_objective);
        EXPECT_EQ(part->violation, one.violation);
        EXPECT_EQ(part->support, one.support);
        EXPECT_EQ(part->unique, one.unique);
        EXPECT_EQ(part->rank.certified, one.rank.certified);
        EXPECT_EQ(part->rank.outside_mass, one.rank.outside_mass);
        EXPECT_EQ(part->rank.words, one.rank.words);
        const Index rows = part->dual.size();
        EXPECT_TRUE(same_bits(part->dual, Eigen::VectorXd(one.dual.segment(row, rows))));
        EXPECT_TRUE(same_bits(part->slack, Eigen::VectorXd(one.slack.segment(row, rows))));
        row += rows;
      }
      EXPECT_EQ(row, problem.rows());
    }
  }
}

TEST(SharedSolve, LeavesToOneProcessWhatNeedsAllRows) {
  const AttentionTask few = drawn(2048, 3);  // far more rows than unknowns
  for (const auto& part : solve_on_ranks(few, {0, 1024, 2048}, {}, 1)) EXPECT_FALSE(part.has_value());
  const AttentionTask task = drawn(2048, 46);
  for (const auto& part : solve_on_ranks(task, {0, 1024, 2048}, {.norm = Norm::spectral(), .tolerance = 1e-2}, 1))
    EXPECT_FALSE(part.has_value());
  for (const auto& part : solve_on_ranks(task, {0, 1024, 2048}, {.soft = {1.0}}, 1)) EXPECT_FALSE(part.has_value());
}

TEST(SharedSolve, TheFirstProcessStopsAll) {
  const AttentionTask task = drawn(2048, 46);
  for (const auto& part : solve_on_ranks(task, {0, 1024, 2048}, {.iteration_limit = 3}, 1)) {
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(part->status, MarginStatus::limit);
  }
}

TEST(SharedRows, PartsFitIfTheyAreWholeSegments) {
  EXPECT_TRUE(SharedRows::fit(4200, 0, 1050));
  EXPECT_TRUE(SharedRows::fit(4200, 1050, 4200));
  EXPECT_FALSE(SharedRows::fit(4200, 0, 1049));
  EXPECT_FALSE(SharedRows::fit(4200, 1051, 4200));
  EXPECT_FALSE(SharedRows::fit(2000, 0, 1000));
}

}  // namespace
}  // namespace attsvm
