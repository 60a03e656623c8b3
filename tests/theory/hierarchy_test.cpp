// Heads of stacks beside their SVMs: solved and verified like those of any task, above a null that is as large.
#include "attsvm/hierarchy.h"

#include <Eigen/QR>
#include <cmath>

#include "attsvm/theory.h"
#include "margin_support.h"
#include "support.h"
#include "theory/sign_flips.h"

namespace attsvm {
namespace {

AttentionTask draw(std::uint64_t seed) {
  return generate({.n = 5, .T = 5, .d = 6, .pattern = QueryPattern::prompt}, seed).task;
}

TEST(Hierarchy, EveryHeadTurnsToTheSvmOfItsLivePositions) {
  Threads threads(2);
  const AttentionTask task = draw(4);
  const StackRun run = train_stack(
      task, {.layers = 2, .heads = 2, .training = {.steps = 4000, .record = {.at = {0, 400, 4000}}}}, threads);
  const auto heads = hierarchy(task, run.records, {.null_draws = 6}, threads);
  const auto read = layer_tasks(task, run.last.stack, Askers::live, threads);
  ASSERT_EQ(heads.size(), 4U);
  for (const HeadMargin& head : heads) {
    const std::size_t k = run.last.stack.at(head.layer, head.head);
    const AttentionTask& own = read[static_cast<std::size_t>(head.layer)];
    EXPECT_EQ(head.selected, attention_map(own, run.last.stack.W[k], threads).selected);
    const MarginProblem problem = MarginProblem::attention(own, Selection::single(head.selected));
    const MarginSolution solved = test::proven(problem);
    EXPECT_NEAR(head.solution.objective, solved.objective, 1e-9 * solved.objective);
    EXPECT_NEAR(head.rho.back(), margin_share(problem, solved, run.last.stack.W[k]), 1e-9);
    EXPECT_TRUE(std::isnan(head.correlation.front())) << "W is zero at the start";
    EXPECT_GT(head.correlation.back(), head.correlation[1]);
    EXPECT_GT(head.correlation.back(), 0.99);
    EXPECT_GT(head.rho.back(), 0.85);
    EXPECT_LT(run.last.log_gradient[k], -30) << "far beyond what plain arithmetic could follow";
    EXPECT_EQ(head.last_rho.null.size(), 6U);
    EXPECT_GT(head.last_rho.value, head.last_rho.mean());
    for (const double rho : head.last_rho.null) EXPECT_TRUE(rho > 0 && rho <= 1 + 1e-9) << rho;
  }
}

TEST(Hierarchy, ItsNullIsAsLargeAsW) {
  const Random random(1, 2, 3);
  const RowMatrix W = RowMatrix::Random(4, 4);
  const Eigen::MatrixXd left = Eigen::HouseholderQR<Eigen::MatrixXd>(Eigen::MatrixXd::Random(4, 4)).householderQ(),
                        right = Eigen::HouseholderQR<Eigen::MatrixXd>(Eigen::MatrixXd::Random(4, 4)).householderQ();
  const Eigen::MatrixXd inner = left.transpose() * W * right;
  const RowMatrix null = sign_flipped(left, inner, right, random);
  EXPECT_NEAR(null.norm(), W.norm(), 1e-13);
  EXPECT_LE(((left.transpose() * null * right).cwiseAbs() - inner.cwiseAbs()).norm(), 1e-13);
  EXPECT_GT((null - W).norm(), 0.1);
}

TEST(Hierarchy, DoesNotDependOnThreads) {
  const AttentionTask task = draw(1);
  Threads one(1), three(3);
  const StackRun run = train_stack(task, {.training = {.steps = 50}}, one);
  const auto a = hierarchy(task, run.records, {.null_draws = 3}, one),
             b = hierarchy(task, run.records, {.null_draws = 3}, three);
  for (std::size_t k = 0; k < a.size(); ++k) {
    EXPECT_EQ(a[k].rho.back(), b[k].rho.back());
    EXPECT_EQ(a[k].last_rho.null, b[k].last_rho.null);
  }
}

TEST(Hierarchy, StopsWhenAsked) {
  const AttentionTask task = draw(1);
  Threads threads(2), one(1);
  const StackRun run = train_stack(task, {.training = {.steps = 50}}, threads);
  Index calls = 0;
  const auto whole = hierarchy(task, run.records, {.null_draws = 2}, one),
             watched = hierarchy(task, run.records,
                                 {.null_draws = 2,
                                  .progress =
                                      [&](const HierarchyProgress&now) {
                                        ++calls;
                                        EXPECT_EQ(now.solves, 6);
                                        return false;
                                      }},
                                 one);
  EXPECT_GE(calls, 6);
  for (std::size_t k = 0; k < whole.size(); ++k) {
    EXPECT_TRUE(watched[k].complete);
    EXPECT_EQ(whole[k].rho.back(), watched[k].rho.back());
    EXPECT_EQ(whole[k].last_rho.null, watched[k].last_rho.null);
  }
  const auto after_one =
      hierarchy(task, run.records, {.null_draws = 2, .progress = [](const auto& now) { return now.done >= 1; }}, one);
  EXPECT_EQ(after_one[0].rho.back(), whole[0].rho.back());
  EXPECT_TRUE(after_one[0].last_rho.null.empty());
  for (const HierarchySettings& settings :
       {HierarchySettings{.progress = [](const auto&) { return true; }}, HierarchySettings{.time_limit = 1e-9}}) {
    for (const HeadMargin& head : hierarchy(task, run.records, settings, threads)) {
      EXPECT_FALSE(head.complete);
      EXPECT_EQ(head.solution.status, MarginStatus::limit);
      EXPECT_TRUE(std::isnan(head.rho.back()) && std::isnan(head.correlation.back()));
    }
  }
  test::expect_refusal([&] { hierarchy(task, run.records, {.time_limit = -1}, one); }, {"time_limit = -1"});
}

}  // namespace
}  // namespace attsvm
