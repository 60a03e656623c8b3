#include "margin/frobenius/exact_solver.h"

#include "margin_support.h"

namespace attsvm {
namespace {

using test::every_fourth;
using test::proven;

/// Sizes near the largest that can be separated. Pivoting by blocks alone cycles on more than half of these draws.
constexpr std::array kNearInfeasible{
    Recipe{.law = Law::separable, .n = 15, .T = 5, .d = 20, .pattern = QueryPattern::prompt},
    Recipe{.law = Law::separable, .n = 30, .T = 5, .d = 20, .pattern = QueryPattern::prompt},
    Recipe{.law = Law::separable, .n = 20, .T = 5, .d = 6},
};

TEST(ExactSolver, WalksWhereBlocksOfPivotsCycle) {
  for (const Recipe& recipe : kNearInfeasible) {
    for (std::uint32_t instance = 0; instance < 12; ++instance) {
      const AttentionTask task = generate(recipe, 1, instance).task;
      const MarginSolution answer = proven(test::selected(task));
      EXPECT_EQ(answer.status, MarginStatus::optimal);
      EXPECT_EQ(answer.method, "block pivoting");  // and not the robust method
    }
  }
}

TEST(ExactSolver, WalksWithEquationsAndRelaxedRows) {
  int blocks = 0;
  for (std::uint32_t instance = 0; instance < 12; ++instance) {
    const Recipe recipe{.law = Law::separable, .n = 18, .T = 5, .d = 6, .dz = 5};
    const AttentionTask task = generate(recipe, 2, instance).task;
    const std::vector<Index> relaxed = every_fourth(task);
    for (const Selection& selection : {*task.select(), test::with_ties(task)}) {
      const MarginSolution answer = proven(MarginProblem::attention(task, selection, relaxed));
      EXPECT_TRUE(is_settled(answer.status));
      blocks += answer.method == "block pivoting";
    }
  }
  EXPECT_GE(blocks, 20);  // 11 of 24 without the walk
}

}  // namespace
}  // namespace attsvm
