#include "margin/conflict/search.h"

#include "margin/certify/certificate.h"
#include "margin/conflict/balance_rows.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using Outcome = ConflictSearch::Outcome;
using test::kept;
using test::selected;

ConflictSearch search(const MarginProblem& problem, int threads = 1) {
  Threads pool(threads);
  return search_conflict(problem, pool, [] { return false; });
}

/// Searches, and checks the proof.
ConflictSearch conflict(const MarginProblem& problem) {
  ConflictSearch found = search(problem);
  EXPECT_EQ(found.outcome, Outcome::conflict);
  MarginSolution solution{.dual = found.lambda};
  Threads alone(1);
  EXPECT_TRUE(Certifier(alone).certify_conflict(problem, solution)) << solution.residual;
  return found;
}

/// Searches, and checks that W meets the rows.
ConflictSearch separable(const MarginProblem& problem) {
  ConflictSearch found = search(problem);
  EXPECT_EQ(found.outcome, Outcome::separable);
  const Eigen::VectorXd values = problem.values(found.W);
  for (Index k = 0; k < problem.rows(); ++k) {
    const double missing = problem.rhs(k) - values(k);
    EXPECT_LE(problem.equal(k) ? std::abs(missing) : missing, 1e-9) << k;
  }
  return found;
}

TEST(ConflictSearch, ProvesDrawnConflicts) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    conflict(selected(generate({.law = Law::infeasible, .n = 20, .T = 6, .d = 5}, seed).task));
    conflict(selected(generate({.law = Law::infeasible, .n = 20, .T = 6, .d = 5, .shortest = 3}, seed).task));
  }
}

TEST(ConflictSearch, ProvesThatRandomSelectionsConflict) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    conflict(kept(generate({.n = 200, .T = 8, .d = 4}, seed).task, 0));
    conflict(kept(generate({.n = 100, .T = 8, .d = 7, .dz = 2}, seed).task, 1));
    conflict(kept(generate({.n = 20, .T = 12, .d = 3, .pattern = QueryPattern::causal}, seed).task, 0));
    conflict(kept(generate({.n = 60, .T = 8, .d = 5, .pattern = QueryPattern::prompt}, seed).task, 0));
  }
}

TEST(ConflictSearch, FindsSeparators) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const Drawn drawn = generate({.law = Law::separable, .n = 100, .T = 8, .d = 5, .shortest = 2}, seed);
    const MarginProblem problem = selected(drawn.task);
    const ConflictSearch found = separable(problem);
    EXPECT_GT(problem.values(found.W).minCoeff(), 0);
  }
}

TEST(ConflictSearch, ATinyConflictHasATinyProof) {
  Drawn drawn = generate({.law = Law::separable, .n = 300, .T = 8, .d = 12}, 1);
  TaskArrays arrays = drawn.task.arrays();
  const auto tokens = f64_span(arrays.tokens), queries = f64_span(arrays.queries);
  std::vector<double> changed(tokens.begin(), tokens.end()), asked(queries.begin(), queries.end());
  std::copy_n(tokens.begin(), 8 * 12, changed.begin() + 8 * 12);
  std::copy_n(queries.begin(), 12, asked.begin() + 12);
  std::vector<Index> select;
  for (Index i = 0; i < 300; ++i) select.push_back(drawn.task.select()->first(i));
  select[1] = (select[0] + 1) % 8;
  arrays.tokens = Array::own(changed, arrays.tokens.shape);
  arrays.queries = Array::own(asked, arrays.queries.shape);
  arrays.select = Array::own(select, {300});
  const AttentionTask task(arrays);
  const ConflictSearch found = conflict(selected(task));
  EXPECT_LE((found.lambda.array() != 0).count(), 145);  // the entries of W plus one
}

TEST(ConflictSearch, TwoCopiesConflict) {
  const AttentionTask task(TaskArrays{.tokens = Array::own(std::vector<double>{1, 2, 3, 4, 1, 2}, {1, 3, 2})});
  const ConflictSearch found = conflict(kept(task, 0));
  EXPECT_EQ(found.lambda, Eigen::Vector2d(0, 1));
  separable(kept(task, 0, std::vector<Index>{0}));
}

TEST(ConflictSearch, RelaxedRows) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Drawn drawn = generate({.law = Law::separable, .n = 90, .T = 8, .d = 5}, seed);
    std::vector<Index> some;
    for (Index i = 0; i < 90; i += 3) some.push_back(i);
    separable(selected(drawn.task, some));
    conflict(kept(generate({.n = 200, .T = 8, .d = 4}, seed).task, 0, some));
  }
}

TEST(ConflictSearch, RelaxedRowsAloneDoNotConflict) {
  // Rows x ≥ 0 and −x ≥ 0 force W·x = 0, which the other row allows; if it also asks for 1 there is a conflict.
  const AttentionTask task(
      TaskArrays{.tokens = Array::own(std::vector<double>{0, 0, -1, 0, /**/ 0, 0, 1, 0, /**/ 0, 0, 0, -1}, {3, 2, 2})});
  const ConflictSearch found = separable(kept(task, 0, std::vector<Index>{0, 1}));
  EXPECT_GT(found.W.norm(), 0);
  EXPECT_EQ((conflict(kept(task, 0, std::vector<Index>{0})).lambda.array() > 0).count(), 2);
}

TEST(ConflictSearch, EqualityRows) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Drawn drawn = generate({.n = 6, .T = 5, .d = 6}, seed);
    const Selection pairs = Selection::sets({{0, 1}, {0}, {2, 4}, {1}, {0, 1, 2, 3}, {0}});
    separable(MarginProblem::attention(drawn.task, pairs));
    separable(MarginProblem::finite_part(drawn.task, pairs, RowMatrix::Random(6, 5)));
    const Drawn many = generate({.n = 40, .T = 5, .d = 3}, seed);
    std::vector<std::vector<Index>> sets(40);
    for (std::size_t i = 0; i < sets.size(); ++i)
      sets[i] = i % 2 == 0 ? std::vector<Index>{0, 3} : std::vector<Index>{1};
    conflict(MarginProblem::attention(many.task, Selection::sets(sets)));
  }
}

TEST(ConflictSearch, ValueProblems) {
  const Drawn drawn = generate({.n = 4, .T = 3, .d = 6}, 1);
  separable(MarginProblem::value(drawn.task, Selection::single(std::vector<Index>{0, 1, 2, 0})));
  const AttentionTask task(TaskArrays{.tokens = Array::own(std::vector<double>{1, 2, 1, 2}, {2, 1, 2}),
                                      .labels = Array::own(std::vector<double>{1, -1}, {2})});
  conflict(MarginProblem::value(task, Selection::single(std::vector<Index>{0, 0})));
}

TEST(ConflictSearch, StopsWhenAsked) {
  const Drawn drawn = generate({.law = Law::separable, .n = 100, .T = 8, .d = 5}, 1);
  Threads alone(1);
  const ConflictSearch found = search_conflict(selected(drawn.task), alone, [] { return true; });
  EXPECT_EQ(found.outcome, Outcome::stopped);
  EXPECT_TRUE(found.lambda.isZero(0));
}

TEST(BalanceRows, FindsTheMultipliersOfFewRows) {
  const AttentionTask task(TaskArrays{.tokens = Array::own(std::vector<double>{0, 0, 3, 0, 0, 5, -1, -1}, {1, 4, 2})});
  const MarginProblem problem = kept(task, 0);
  Eigen::VectorXd lambda;
  EXPECT_LE(balance_rows(problem, {0, 1, 2}, lambda), 1e-15);
  EXPECT_NEAR(lambda(2) / lambda(0), 3, 1e-12);
  EXPECT_NEAR(lambda(2) / lambda(1), 5, 1e-12);
  EXPECT_GT(balance_rows(problem, {0, 2}, lambda), 1e-3);
}

}  // namespace
}  // namespace attsvm
