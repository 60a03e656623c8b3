// Solves the SVMs of the published experiments again, compares W and objective, and verifies every answer.
#include <cmath>

#include "margin_support.h"

namespace attsvm {
namespace {

using test::proven;

constexpr double kObjective = 1e-9, kWeights = 1e-7;

struct Fixture {
  std::string name;
  AttentionTask task;
  NpzFile expect;
};

std::vector<Fixture> fixtures() {
  Threads threads(1);
  std::vector<Fixture> list;
  for (const std::string& path : test::fixture_tasks()) {
    const std::string stem = path.substr(0, path.size() - std::string(".task.npz").size());
    list.push_back({stem.substr(stem.rfind('/') + 1), load_task(path, threads), NpzFile(stem + ".expect.npz")});
  }
  return list;
}

RowMatrix matrix(const NpzFile& file, const std::string& name) {
  Threads threads(1);
  const Array array = to_f64(file.read(name, threads));
  return ConstRows(f64_span(array).data(), array.shape[0], array.rank() > 1 ? array.shape[1] : 1);
}

void expect_answer(const MarginProblem& problem, const RowMatrix& W) {
  const MarginSolution solution = proven(problem);
  ASSERT_EQ(solution.status, MarginStatus::optimal);
  ASSERT_EQ(solution.W.rows(), W.rows());
  ASSERT_EQ(solution.W.cols(), W.cols());
  EXPECT_NEAR(solution.objective, W.norm(), kObjective * W.norm());
  EXPECT_LE((solution.W - W).cwiseAbs().maxCoeff(), kWeights);
  EXPECT_LE(solution.gap, 1e-12) << "small problems are solved to rounding";
}

MarginProblem chosen(const Fixture& fixture) { return MarginProblem::attention(fixture.task, *fixture.task.select()); }

TEST(FrobeniusReference, KeyQuerySvms) {
  int solved = 0, conflicts = 0;
  for (const Fixture& fixture : fixtures()) {
    SCOPED_TRACE(fixture.name);
    if (fixture.expect.has("fro_W")) {
      expect_answer(chosen(fixture), matrix(fixture.expect, "fro_W"));
      const double objective = matrix(fixture.expect, "fro_objective")(0);
      EXPECT_NEAR(proven(chosen(fixture)).objective, objective, kObjective * objective);
      ++solved;
    } else if (fixture.expect.has("feasible")) {
      ASSERT_EQ(matrix(fixture.expect, "feasible")(0), 0);
      EXPECT_EQ(proven(chosen(fixture)).status, MarginStatus::infeasible);
      ++conflicts;
    }
  }
  EXPECT_GE(solved, 40);
  EXPECT_GE(conflicts, 6);
}

TEST(FrobeniusReference, SetsOfTokens) {
  int count = 0, several = 0;
  for (const Fixture& fixture : fixtures()) {
    if (!fixture.expect.has("gen_W")) continue;
    SCOPED_TRACE(fixture.name);
    ++count;
    Threads threads(1);
    const AttentionTask& task = fixture.task;
    expect_answer(chosen(fixture), matrix(fixture.expect, "gen_W"));
    const auto one = to_indices(fixture.expect.read("one_token", threads), "one_token");
    expect_answer(MarginProblem::attention(task, Selection::single(one)), matrix(fixture.expect, "single_W"));
    const RowMatrix log_attention = matrix(fixture.expect, "attention").array().log();
    const auto finite = MarginProblem::finite_part(task, *task.select(), log_attention);
    several += finite.rows() > 0 ? 1 : 0;
    expect_answer(finite, matrix(fixture.expect, "finite_W"));
    const MarginSolution part = proven(finite);
    EXPECT_LE(part.slack.lpNorm<1>(), 1e-12);
    EXPECT_LE((finite.weigh(part.dual) * part.objective - part.W).norm(), 1e-12 * part.objective);
    Index row = 0;
    for (Index i = 0; i < task.queries(); ++i) {  // checks the log-ratios by the logits of W
      const Eigen::VectorXd logits = task.keys(task.sequence(i)) * (part.W * task.query(i));
      const auto kept = task.select()->kept(i);
      for (const Index t : kept.subspan(1)) {
        ++row;
        EXPECT_NEAR(logits(kept[0]) - logits(t), log_attention(i, kept[0]) - log_attention(i, t), 1e-12);
      }
    }
    EXPECT_EQ(row, finite.rows());
  }
  EXPECT_EQ(count, 8);
  EXPECT_GE(several, 6) << "fixtures with a finite part";
}

TEST(FrobeniusReference, PromptSvms) {
  int count = 0;
  for (const Fixture& fixture : fixtures()) {
    SCOPED_TRACE(fixture.name);
    const AttentionTask& task = fixture.task;
    if (fixture.expect.has("svm")) {
      ++count;
      expect_answer(chosen(fixture), matrix(fixture.expect, "svm"));
    }
    for (const Index token : {0, 1}) {
      const std::string name = "svm_token" + std::to_string(token);
      if (!fixture.expect.has(name)) continue;
      ++count;
      expect_answer(MarginProblem::attention(task, Selection::single(std::vector{token})),
                    matrix(fixture.expect, name));
    }
  }
  EXPECT_EQ(count, 5);
}

TEST(FrobeniusReference, JointTraining) {
  int count = 0;
  for (const Fixture& fixture : fixtures()) {
    if (!fixture.expect.has("p_svm")) continue;
    SCOPED_TRACE(fixture.name);
    ++count;
    const AttentionTask& task = fixture.task;
    expect_answer(chosen(fixture), matrix(fixture.expect, "p_svm"));
    expect_answer(MarginProblem::value(task, *task.select()), matrix(fixture.expect, "v_svm"));
    const std::vector<Index> relax{2};
    expect_answer(MarginProblem::attention(task, *task.select(), relax), matrix(fixture.expect, "p_relaxed"));
  }
  EXPECT_EQ(count, 2);
}

TEST(FrobeniusReference, LossExperiments) {
  Threads threads(1);
  const NpzFile file(test::fixture("losses.expect.npz"));
  const Array tokens = file.read("tokens", threads), keys = file.read("keys", threads);
  const Index size = 2 * 2 * 3;
  ASSERT_EQ(tokens.shape, (std::vector<Index>{11, 2, 2, 3}));
  for (Index c = 0; c < 11; ++c) {
    SCOPED_TRACE(c);
    const AttentionTask task({.tokens = Array::view(f64_span(tokens).data() + c * size, {2, 2, 3}),
                              .keys = Array::view(f64_span(keys).data() + c * size, {2, 2, 3}),
                              .head = file.read("head", threads)});
    expect_answer(MarginProblem::attention(task, Selection::single(std::vector<Index>{1, 1})), matrix(file, "svm"));
  }
}

}  // namespace
}  // namespace attsvm
