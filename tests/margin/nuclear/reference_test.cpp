// Solves the nuclear-norm SVMs of the published experiments again and verifies every answer.
#include <cmath>

#include "linear_algebra.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using test::proven;

RowMatrix matrix(const NpzFile& file, const std::string& name) {
  Threads threads(1);
  const Array array = to_f64(file.read(name, threads));
  return ConstRows(f64_span(array).data(), array.rank() > 0 ? array.shape[0] : 1,
                   array.rank() > 1 ? array.shape[1] : 1);
}

void expect_balanced(const MarginSolution& solution) {
  const double size = solution.objective;
  EXPECT_LE((solution.K * solution.Q.transpose() - solution.W).norm(), 1e-13 * size);
  EXPECT_LE((solution.K.transpose() * solution.K - solution.Q.transpose() * solution.Q).norm(), 1e-12 * size);
}

TEST(NuclearReference, KeyQuerySvms) {
  int solved = 0, conflicts = 0;
  for (const std::string& path : test::fixture_tasks()) {
    const std::string stem = path.substr(0, path.size() - std::string(".task.npz").size());
    SCOPED_TRACE(stem);
    Threads threads(1);
    const NpzFile expect(stem + ".expect.npz");
    if (!expect.has("nuc_W") && !expect.has("feasible")) continue;
    const AttentionTask task = load_task(path, threads);
    const MarginProblem problem = MarginProblem::attention(task, *task.select());
    const MarginSolution nuclear = proven(problem, {.norm = Norm::nuclear()}), frobenius = proven(problem);
    ASSERT_EQ(nuclear.status, frobenius.status);
    if (!expect.has("nuc_W")) {
      EXPECT_EQ(nuclear.status, MarginStatus::infeasible);
      EXPECT_EQ(nuclear.K.cols(), 0);
      ++conflicts;
      continue;
    }
    ++solved;
    ASSERT_EQ(nuclear.status, MarginStatus::optimal);
    const double objective = matrix(expect, "nuc_objective")(0);
    EXPECT_NEAR(nuclear.objective, objective, 1e-9 * objective);
    // To rounding, which is coarser where the rows nearly conflict: there ‖W‖ is hundreds of times the usual.
    EXPECT_LE(nuclear.gap, objective < 100 ? 1e-12 : 1e-10);
    if (objective < 100) {  // the gap decides how small a singular value is proven; 1,265 has one of 3e-4 of it
      EXPECT_TRUE(nuclear.rank.certified) << nuclear.rank.words;
    } else {
      EXPECT_NE(nuclear.rank.certified, nuclear.rank.words.find("gap") != std::string_view::npos) << nuclear.rank.words;
    }
    const RowMatrix W = matrix(expect, "nuc_W");
    EXPECT_LE((nuclear.W - W).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_EQ(nuclear.rank.rank, test::rank_of(W, 1e-6));
    expect_balanced(nuclear);
    EXPECT_GE(nuclear.objective, frobenius.objective * (1 - 1e-12));
    EXPECT_LE(nuclear.W.norm(), nuclear.objective * (1 + 1e-12));
    EXPECT_LE(nuclear.objective, std::sqrt(static_cast<double>(nuclear.rank.rank)) * nuclear.W.norm() * (1 + 1e-12));
    EXPECT_GE(nuclear.W.norm(), frobenius.objective * (1 - 1e-12));
  }
  EXPECT_GE(solved, 40);
  EXPECT_GE(conflicts, 6);
}

TEST(NuclearReference, SetsAndPrompts) {
  int count = 0;
  for (const std::string& path : test::fixture_tasks()) {
    SCOPED_TRACE(path);
    Threads threads(1);
    const AttentionTask task = load_task(path, threads);
    if (!task.select()) continue;
    const MarginProblem problem = MarginProblem::attention(task, *task.select());
    const MarginSolution nuclear = proven(problem, {.norm = Norm::nuclear()}), frobenius = proven(problem);
    ASSERT_EQ(nuclear.status, frobenius.status);
    if (nuclear.status != MarginStatus::optimal) continue;
    ++count;
    expect_balanced(nuclear);
    EXPECT_GE(nuclear.objective, frobenius.objective * (1 - 1e-9));
    if (task.query_size() == 1) {
      EXPECT_NEAR(nuclear.objective, frobenius.objective, 1e-12 * frobenius.objective);
    }
  }
  EXPECT_GE(count, 50);
}

}  // namespace
}  // namespace attsvm
