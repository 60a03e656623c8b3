#include "attsvm/verify.h"

#include <cmath>
#include <limits>

#include "support.h"

namespace attsvm {
namespace {

/// A problem with equalities, margins and relaxed rows, whose answer has multipliers on each of the first two.
struct Mixed {
  AttentionTask task = generate({.n = 4, .T = 5, .d = 6, .dz = 4}, 12).task;
  MarginProblem problem =
      MarginProblem::attention(task, Selection::sets({{1, 3}, {1}, {3}, {0}}), std::vector<Index>{3});
  SolveSettings settings{};
};

struct Conflict {
  AttentionTask task = generate({.law = Law::infeasible, .n = 5, .T = 4, .d = 3}, 2).task;
  MarginProblem problem = MarginProblem::attention(task, *task.select());
  SolveSettings settings{};
};

/// A solve that was stopped early, with a W that meets the rows.
struct Stopped {
  AttentionTask task = generate({.law = Law::separable, .n = 12, .T = 6, .d = 6}, 1).task;
  MarginProblem problem = MarginProblem::attention(task, *task.select());
  SolveSettings settings{.iteration_limit = 2};
};

template <class Case>
StoredSolution answer(const Case& given) {
  Threads threads(1);
  return stored(given.problem, solve(given.problem, given.settings, threads), given.settings.tolerance);
}

template <class Case>
void expect_rejected(const Case& given, const std::string& word, const std::function<void(StoredSolution&)>& alter) {
  StoredSolution solution = answer(given);
  ASSERT_TRUE(verify(given.task, solution).valid) << verify(given.task, solution).reason;
  alter(solution);
  const Verification verdict = verify(given.task, solution);
  EXPECT_FALSE(verdict.valid) << "expected a rejection with '" << word << "'";
  EXPECT_NE(verdict.reason.find(word), std::string::npos) << verdict.reason << " lacks '" << word << "'";
  EXPECT_EQ(verdict.reason.find('\n'), std::string::npos);
}

/// The row of the largest multiplier among equalities, or among inequalities.
std::size_t heaviest(const StoredSolution& solution, bool equal) {
  std::size_t best = 0;
  double weight = 0;
  for (std::size_t k = 0; k < solution.dual.size(); ++k) {
    if (solution.row_equal[k] != equal || std::abs(solution.dual[k]) <= weight) continue;
    best = k;
    weight = std::abs(solution.dual[k]);
  }
  EXPECT_GT(weight, 1e-3) << "the case has no such row";
  return best;
}

template <class List>
void erase_at(List& list, std::size_t k) {
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(k));
}

void erase_row(StoredSolution& s, std::size_t k) {
  for (auto* list : {&s.row_query, &s.row_keep, &s.row_drop}) erase_at(*list, k);
  for (auto* list : {&s.rhs, &s.slack, &s.dual}) erase_at(*list, k);
  erase_at(s.row_equal, k);
}

void repeat_last_row(StoredSolution& s) {
  for (auto* list : {&s.row_query, &s.row_keep, &s.row_drop}) list->push_back(list->back());
  for (auto* list : {&s.rhs, &s.slack}) list->push_back(list->back());
  s.dual.push_back(0);
  s.row_equal.push_back(s.row_equal.back());
}

TEST(Verify, RecomputesAnOptimum) {
  const Mixed mixed;
  const StoredSolution solution = answer(mixed);
  const Verification verdict = verify(mixed.task, solution);
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_EQ(verdict.status, "optimal");
  EXPECT_EQ(verdict.reason, "");
  EXPECT_NEAR(verdict.objective, solution.W.norm(), 1e-14 * verdict.objective);
  EXPECT_NEAR(verdict.dual_objective, verdict.objective, 1e-12 * verdict.objective);
  EXPECT_LE(verdict.gap, 1e-12);
  EXPECT_LE(verdict.violation, 1e-12);
  EXPECT_TRUE(std::isnan(verdict.residual));
}

TEST(Verify, RecomputesACertificate) {
  const Conflict conflict;
  const Verification verdict = verify(conflict.task, answer(conflict));
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_EQ(verdict.status, "infeasible");
  for (const double nothing : {verdict.objective, verdict.dual_objective, verdict.gap, verdict.violation})
    EXPECT_TRUE(std::isnan(nothing));
  EXPECT_LE(verdict.residual, 1e-12);
}

TEST(Verify, RejectsAnAlteredW) {
  const Mixed mixed;
  expect_rejected(mixed, "violates", [&](StoredSolution& s) {  // consistently shrunk: only the rows show it
    s.W *= 1 - 1e-6;
    s.objective *= 1 - 1e-6;
    const Eigen::VectorXd values = mixed.problem.values(s.W);
    for (std::size_t k = 0; k < s.slack.size(); ++k) s.slack[k] = values(static_cast<Index>(k)) - s.rhs[k];
  });
  expect_rejected(mixed, "slack", [](StoredSolution& s) { s.W *= 1 - 1e-6; });
  expect_rejected(mixed, "slack", [](StoredSolution& s) { s.W *= -1; });
  expect_rejected(mixed, "gap", [&](StoredSolution& s) {  // feasible but too large by more than the tolerance
    s.W *= 2;
    s.objective *= 2;
    const Eigen::VectorXd values = mixed.problem.values(s.W);
    for (std::size_t k = 0; k < s.slack.size(); ++k) s.slack[k] = values(static_cast<Index>(k)) - s.rhs[k];
  });
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    expect_rejected(mixed, "W[1,2] is not finite", [&](StoredSolution& s) { s.W(1, 2) = bad; });
  expect_rejected(mixed, "W has shape (5,4)", [](StoredSolution& s) { s.W.conservativeResize(5, 4); });
  expect_rejected(mixed, "W has shape (6,5)", [](StoredSolution& s) { s.W.conservativeResize(6, 5); });
  expect_rejected(mixed, "W has shape (4,6)", [](StoredSolution& s) { s.W = RowMatrix(s.W.transpose()); });
}

TEST(Verify, RejectsAlteredMultipliers) {
  const Mixed mixed;
  expect_rejected(mixed, "negative", [](StoredSolution& s) { s.dual[heaviest(s, false)] *= -1; });
  expect_rejected(mixed, "dual norm", [](StoredSolution& s) { s.dual[heaviest(s, true)] *= -1; });
  expect_rejected(mixed, "dual norm", [](StoredSolution& s) {
    for (double& weight : s.dual) weight *= 2;
  });
  expect_rejected(mixed, "dual_objective", [](StoredSolution& s) { s.dual.assign(s.dual.size(), 0); });
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()})
    expect_rejected(mixed, "dual[2] is not finite", [&](StoredSolution& s) { s.dual[2] = bad; });
}

TEST(Verify, RejectsAlteredRows) {
  const Mixed mixed;
  const auto rejected = [&](const std::function<void(StoredSolution&)>& alter) {
    expect_rejected(mixed, "row", alter);
  };
  rejected([](StoredSolution& s) { erase_row(s, 7); });
  rejected([](StoredSolution& s) { erase_row(s, s.rhs.size() - 1); });
  rejected(repeat_last_row);
  rejected([](StoredSolution& s) { s.rhs[5] = 1 - 1e-9; });
  rejected([](StoredSolution& s) { s.rhs[5] = std::nan(""); });
  rejected([](StoredSolution& s) { s.row_equal[heaviest(s, true)] = false; });
  rejected([](StoredSolution& s) { s.row_equal[heaviest(s, false)] = true; });
  rejected([](StoredSolution& s) { s.row_keep[4] = 2; });
  rejected([](StoredSolution& s) { s.row_drop[4] = 2; });
  rejected([](StoredSolution& s) { s.row_query[4] = 0; });
  rejected([](StoredSolution& s) {  // another order
    std::swap(s.row_drop[4], s.row_drop[5]);
    std::swap(s.slack[4], s.slack[5]);
    std::swap(s.dual[4], s.dual[5]);
  });
  for (auto list : {&StoredSolution::slack, &StoredSolution::dual, &StoredSolution::rhs})
    rejected([&](StoredSolution& s) { (s.*list).pop_back(); });
}

TEST(Verify, RejectsAlteredNumbers) {
  const Mixed mixed;
  for (const double factor : {1 + 1e-6, 1 - 1e-6, std::nan("")}) {
    expect_rejected(mixed, "objective is", [&](StoredSolution& s) { s.objective *= factor; });
    expect_rejected(mixed, "dual_objective is", [&](StoredSolution& s) { s.dual_objective *= factor; });
  }
  for (const double shift : {1e-6, -1e-6, std::nan("")})
    expect_rejected(mixed, "slack[3]", [&](StoredSolution& s) { s.slack[3] += shift; });
  const Stopped stopped;
  ASSERT_EQ(answer(stopped).status, "limit");
  expect_rejected(stopped, "gap", [](StoredSolution& s) { s.status = "optimal"; });
  for (const double tolerance : {0.0, -1.0, std::nan("")})
    expect_rejected(mixed, "tolerance", [&](StoredSolution& s) { s.tolerance = tolerance; });
}

TEST(Verify, RejectsAnotherStatus) {
  const Mixed mixed;
  const Conflict conflict;
  const Stopped stopped;
  const auto renamed = [](const std::string& status) { return [=](StoredSolution& s) { s.status = status; }; };
  expect_rejected(mixed, "infeasible", renamed("infeasible"));
  expect_rejected(stopped, "infeasible", renamed("infeasible"));
  expect_rejected(stopped, "gap", renamed("optimal"));
  for (const std::string status : {"optimal", "limit", "stalled"}) {
    expect_rejected(conflict, "violates", [&](StoredSolution& s) {
      s.status = status;
      s.objective = s.dual_objective = 0;
    });
  }
  for (const std::string status : {"", "Optimal", "optimal\n"}) expect_rejected(mixed, "status", renamed(status));
  StoredSolution modest = answer(mixed);  // an optimum with status limit claims less, and the claim is true
  modest.status = "limit";
  EXPECT_TRUE(verify(mixed.task, modest).valid);
}

TEST(Verify, RejectsAnotherQuestion) {
  const Mixed mixed;
  const auto select = [&](const Selection& selection) {
    return [=](StoredSolution& s) { s.select = selection.mask(5); };
  };
  expect_rejected(mixed, "row", select(Selection::sets({{1, 3}, {1}, {3}, {1}})));
  expect_rejected(mixed, "row", select(Selection::sets({{1}, {1}, {3}, {0}})));
  expect_rejected(mixed, "row", select(Selection::sets({{1, 3}, {1, 2}, {3}, {0}})));
  expect_rejected(mixed, "row", [](StoredSolution& s) { s.relax[3] = false; });
  expect_rejected(mixed, "row", [](StoredSolution& s) { s.relax[0] = true; });
  expect_rejected(mixed, "relax", [](StoredSolution& s) { s.relax.pop_back(); });
  expect_rejected(mixed, "select", [](StoredSolution& s) { s.select = {}; });
  expect_rejected(mixed, "select[0] keeps no token", [](StoredSolution& s) {
    s.select = Array::own(std::vector<bool>(20, false), {4, 5});
  });
  expect_rejected(mixed, "several", [](StoredSolution& s) { s.problem = "v"; });
  expect_rejected(mixed, "problem", [](StoredSolution& s) { s.problem = "finite"; });
  expect_rejected(mixed, "objective", [](StoredSolution& s) { s.norm = "nuc"; });
  expect_rejected(mixed, "norm", [](StoredSolution& s) { s.norm = "most"; });
  expect_rejected(mixed, "objective", [](StoredSolution& s) { s.norm = "max"; });
}

TEST(Verify, RejectsAHiddenToken) {
  TaskArrays arrays = generate({.n = 2, .T = 3, .d = 4}, 3).task.arrays();
  arrays.visible = Array::own(std::vector<Index>{2, 3}, {2});
  const AttentionTask task(arrays);
  StoredSolution solution{.W = RowMatrix::Zero(4, 4), .relax = {false, false}, .w_only = true};
  solution.select = Selection::single(std::vector<Index>{2, 0}).mask(3);
  EXPECT_NE(verify(task, solution).reason.find("select[0,2]"), std::string::npos);
}

TEST(Verify, ValueProblemsHaveNothingToRelax) {
  const AttentionTask task = generate({.n = 2, .T = 3, .d = 4}, 3).task;
  Threads threads(1);
  const MarginProblem problem = MarginProblem::value(task, Selection::single(std::vector<Index>{0, 1}));
  StoredSolution solution = stored(problem, solve(problem, {}, threads), 1e-8);
  EXPECT_TRUE(verify(task, solution).valid) << verify(task, solution).reason;
  solution.relax[1] = true;
  EXPECT_FALSE(verify(task, solution).valid);
}

TEST(Verify, RejectsAlteredCertificates) {
  const Conflict conflict;
  const auto rejected = [&](const std::function<void(StoredSolution&)>& alter) {
    expect_rejected(conflict, "certificate", alter);
  };
  rejected([](StoredSolution& s) { s.dual[heaviest(s, false)] += 1e-6; });
  rejected([](StoredSolution& s) {  // keeps the sum Σ rhs·dual but not A(dual) = 0
    const std::size_t k = heaviest(s, false);
    s.dual[k] -= 1e-6;
    s.dual[k == 0 ? 1 : 0] += 1e-6;
  });
  rejected([](StoredSolution& s) {
    for (double& weight : s.dual) weight *= 2;
  });
  rejected([](StoredSolution& s) { s.dual.assign(s.dual.size(), 0); });
  expect_rejected(conflict, "negative", [](StoredSolution& s) { s.dual[heaviest(s, false)] *= -1; });
  expect_rejected(conflict, "not finite", [](StoredSolution& s) { s.dual[heaviest(s, false)] = std::nan(""); });
  expect_rejected(conflict, "row", [](StoredSolution& s) { erase_row(s, heaviest(s, false)); });
}

TEST(Verify, RejectsAProofOfAnotherTask) {
  const Conflict conflict;
  const StoredSolution solution = answer(conflict);
  TaskArrays arrays = conflict.task.arrays();
  const auto old = f64_span(arrays.tokens);
  std::vector<double> tokens(old.begin(), old.end());
  for (double& x : tokens) x += 1e-9 * std::sin(1e6 * x);
  arrays.tokens = Array::own(tokens, arrays.tokens.shape);
  EXPECT_FALSE(verify(AttentionTask(arrays), solution).valid);
}

TEST(Verify, JudgesWAlone) {
  const Mixed mixed;
  const StoredSolution whole = answer(mixed);
  StoredSolution alone{.W = whole.W, .select = whole.select, .relax = whole.relax, .w_only = true};
  const Verification verdict = verify(mixed.task, alone);
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_NEAR(verdict.objective, whole.objective, 1e-14 * whole.objective);
  EXPECT_TRUE(std::isnan(verdict.dual_objective) && std::isnan(verdict.gap));
  alone.W *= 3;  // still feasible: equalities stay met, margins grow
  EXPECT_TRUE(verify(mixed.task, alone).valid);
  alone.W = whole.W * (1 - 1e-8);
  EXPECT_FALSE(verify(mixed.task, alone).valid);
  EXPECT_NE(verify(mixed.task, alone).reason.find("violates"), std::string::npos);
  EXPECT_NEAR(verify(mixed.task, alone).objective, whole.objective, 1e-7 * whole.objective);
  alone.W = whole.W;
  alone.W(0, 0) += 1e-6;
  EXPECT_FALSE(verify(mixed.task, alone).valid);
  alone.W.setZero();
  EXPECT_FALSE(verify(mixed.task, alone).valid);
}

}  // namespace
}  // namespace attsvm
