// Verdicts, correlations and equivalence matrices of the published runs.
#include <cmath>

#include "support.h"
#include "theory/selections.h"

namespace attsvm {
namespace {

struct Published {
  std::string name;
  AttentionTask task;
  NpzFile expect;
};

std::vector<Published> published(const std::string& start) {
  Threads threads(1);
  std::vector<Published> list;
  for (const std::string& path : test::fixture_tasks()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (!name.starts_with(start)) continue;
    const std::string stem = path.substr(0, path.size() - std::string(".task.npz").size());
    list.push_back({name, load_task(path, threads), NpzFile(stem + ".expect.npz")});
  }
  EXPECT_FALSE(list.empty()) << start;
  return list;
}

RowMatrix matrix(const NpzFile& file, const std::string& name) {
  Threads threads(1);
  const Array array = to_f64(file.read(name, threads));
  return ConstRows(f64_span(array).data(), array.shape[0], array.rank() > 1 ? array.shape[1] : 1);
}

/// The points of record_W, and the array that keeps them alive.
struct Points {
  explicit Points(const NpzFile& file) {
    Threads threads(1);
    numbers = to_f64(file.read("record_W", threads));
    const Index rows = numbers.shape[1], cols = numbers.shape[2];
    for (Index r = 0; r < numbers.shape[0]; ++r)
      list.emplace_back(f64_span(numbers).data() + r * rows * cols, rows, cols);
  }
  Array numbers;
  std::vector<ConstRows> list;
};

void expect_near(const RowMatrix& found, const RowMatrix& expected, double tolerance, const char* what) {
  ASSERT_EQ(found.rows(), expected.rows());
  EXPECT_LE((found - expected).cwiseAbs().maxCoeff(), tolerance * std::max(1.0, expected.cwiseAbs().maxCoeff()))
      << what;
}

TEST(TheoryReference, PublishedRuns) {
  Threads threads(1);
  for (const char* kind : {"local_W", "local_KQ"}) {
    for (const Published& run : published(kind)) {
      SCOPED_TRACE(run.name);
      const Points points(run.expect);
      const Check check = check_run(run.task, points.list.back(), points.list, {}, threads);
      EXPECT_EQ(check.selection, *run.task.select()) << "the run's own selection";
      ASSERT_TRUE(check.separable && check.nuclear);
      const RowMatrix fro = matrix(run.expect, "fro_W"), nuc = matrix(run.expect, "nuc_W");
      EXPECT_NEAR(check.correlation_fro.back(), correlation(points.list.back(), fro), 1e-9);
      EXPECT_NEAR(check.correlation_nuc.back(), correlation(points.list.back(), nuc), 1e-7);
      EXPECT_EQ(check.verdict == Verdict::global, *run.task.select() == check.optimal.selection);
      // Local optimality is defined by the Frobenius SVM, to which W runs converge; (K,Q) runs do not.
      if (kind == std::string("local_W")) {
        EXPECT_NE(check.verdict, Verdict::neither) << check.reason;
      }
    }
  }
}

TEST(TheoryReference, EquivalenceOfNonlinearHeads) {
  Threads threads(1);
  for (const Published& run : published("multi_d")) {
    SCOPED_TRACE(run.name);
    const Points points(run.expect);
    const RowMatrix trained = matrix(run.expect, "trained_W");
    const Check check = check_run(run.task, trained, points.list, {}, threads);
    EXPECT_EQ(check.selection, *run.task.select());
    ASSERT_TRUE(check.equivalence && check.equivalence->holds_together());
    // The published finite part uses the attention of the step before the last; so does this comparison.
    MarginSolver solver(threads);
    const RowMatrix log_attention = matrix(run.expect, "attention").array().log();
    const Equivalence fit = fit_equivalence(run.task, check.selection, trained, log_attention, {}, solver);
    expect_near(fit.gen.W, matrix(run.expect, "gen_W"), 1e-7, "gen_W");
    expect_near(fit.finite.W, matrix(run.expect, "finite_W"), 1e-9, "finite_W");
    expect_near(fit.W, matrix(run.expect, "equivalence_W"), 1e-7, "equivalence_W");
    expect_near(fit.single.W, matrix(run.expect, "single_W"), 1e-7, "single_W");
    const double R = matrix(run.expect, "R")(0);
    EXPECT_NEAR(fit.R, R, 1e-7 * R);
    const auto last = [&](const char* name) {
      const RowMatrix list = matrix(run.expect, name);
      return list(list.rows() - 1, 0);
    };
    EXPECT_NEAR(check.correlation_gen.back(), last("correlation_gen"), 1e-7);
    EXPECT_NEAR(check.correlation_single.back(), last("correlation_single"), 1e-7);
    EXPECT_NEAR(correlation(trained, fit.W), last("correlation_equivalence"), 1e-7);
    EXPECT_NEAR(check.correlation_equivalence.back(), last("correlation_equivalence"), 1e-4) << "a step later";
  }
}

TEST(TheoryReference, JointTrainingRelaxesWhatTheHeadDoesNotNeed) {
  Threads threads(1);
  for (const Published& run : published("joint_")) {
    SCOPED_TRACE(run.name);
    const bool tight = run.name.starts_with("joint_tight");
    const auto points =
        regularization_path(
            run.task, {.param = Parametrization::p, .joint = true, .radii = {1, 10, 100, 1000}, .starts = 4}, threads)
            .points;
    EXPECT_EQ(points.back().relaxed, tight ? 0 : 1);
    EXPECT_GT(points.back().correlation, 1 - 1e-3);
    EXPECT_GT(points.back().head_correlation, 1 - 1e-3);
  }
}

}  // namespace
}  // namespace attsvm
