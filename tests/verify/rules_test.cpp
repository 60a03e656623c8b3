// Forged files, each refused by one rule of verify and by no other.
#include <cmath>
#include <limits>

#include "margin_support.h"

namespace attsvm {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Filed {
  AttentionTask task;
  StoredSolution solution;
};

Filed filed(const std::string& task, const std::string& solution) {
  Threads threads(1);
  Filed result{load_task(test::fixture("trust/" + task + ".npz"), threads),
               load_solution(test::fixture("trust/" + solution + ".npz"), threads)};
  result.solution = completed(result.task, std::move(result.solution));
  return result;
}

void expect_refused(const AttentionTask& task, const StoredSolution& solution, const std::string& word) {
  const Verification verdict = verify(task, solution);
  EXPECT_FALSE(verdict.valid) << "expected '" << word << "'";
  EXPECT_NE(verdict.reason.find(word), std::string::npos) << verdict.reason << " lacks '" << word << "'";
}

TEST(VerifyRules, RefusesForgedFiles) {
  const std::vector<std::array<std::string, 3>> table{
      {"absorb_task", "t_absorb", "dual norm of A(dual) is 10"},  // 1e22 absorbs smaller terms in double
      {"pump_task", "t_pump", "W is not zero"},                   // a feasible task "proven" infeasible
      {"tiny_task", "t_tiny", "violates row 0"},                  // 1e-10 on a row of right-hand side 0
      {"tiny_relax_task", "t_tiny_relax", "violates row 1"},      // the same on a relaxed row
      {"base_task", "t_scaleW_tol", "the gap is 0.98"},           // the tolerance in the file would allow it
      {"base_task", "t_tol_inf", "tolerance is inf"},             // infinity would allow anything
      {"base_task", "t_zerocols", "is zero; the rank"},           // K and Q wider than the rank
      {"inf_task", "t_inf_garbage", "W[0,0] is not finite"},      // NaN where a certificate has no W
  };
  for (const auto& [task, solution, word] : table) {
    SCOPED_TRACE(solution);
    const Filed forged = filed(task, solution);
    expect_refused(forged.task, forged.solution, word);
  }
}

/// The multipliers of the forged proof in a file that is otherwise correct: rows = 0 cancel each other.
TEST(VerifyRules, CancellingMultipliersProveNothing) {
  Filed forged = filed("pump_task", "t_pump");
  forged.solution.W.setZero();
  forged.solution.objective = forged.solution.dual_objective = kNaN;
  for (std::size_t k = 0; k < forged.solution.rhs.size(); ++k) forged.solution.slack[k] = -forged.solution.rhs[k];
  expect_refused(forged.task, forged.solution, "the certificate proves norm at least");
}

TEST(VerifyRules, NamesWhoseRowsItChecked) {
  const Filed relaxed = filed("base_task", "t_relaxall"), selected = filed("base_task", "t_selectall");
  const Verification first = verify(relaxed.task, relaxed.solution), second = verify(selected.task, selected.solution);
  EXPECT_TRUE(first.valid && first.own_selection) << first.reason;
  EXPECT_EQ(first.relaxed, (std::vector<Index>{0, 1, 2, 3}));
  EXPECT_NE(first.question.find("relaxed to >= 0 for 4 queries (0, 1, 2, 3)"), std::string::npos) << first.question;
  EXPECT_TRUE(second.valid && !second.own_selection && second.relaxed.empty()) << second.reason;
  EXPECT_NE(second.question.find("differs from the task's optimal tokens for 4 queries"), std::string::npos)
      << second.question;
  const AttentionTask own = test::separable({.n = 3, .T = 3, .d = 4});
  const MarginProblem problem = test::selected(own);
  const Verification plain = verify(own, stored(problem, test::proven(problem), 1e-8));
  EXPECT_TRUE(plain.own_selection && plain.question.empty() && plain.relaxed.empty());
}

TEST(VerifyRules, NuclearNormsOfIntegerMatricesSettle) {
  Filed given = filed("settle_task", "settle_W");
  given.solution.norm = "nuc";
  const Verification verdict = verify(given.task, given.solution);
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_NEAR(verdict.objective, Norm::nuclear().of(given.solution.W), 1e-13 * verdict.objective);
}

/// W_ij ≥ 1 for the diagonal: I is optimal in the Frobenius norm, and in the nuclear one.
struct Diagonal {
  explicit Diagonal(Index d, double unit = 1) : size(d) {
    std::vector<double> tokens(static_cast<std::size_t>(2 * d * d)), queries(static_cast<std::size_t>(d * d));
    for (Index i = 0; i < d; ++i) {
      tokens[static_cast<std::size_t>(2 * d * i + i)] = unit;
      queries[static_cast<std::size_t>(d * i + i)] = 1;
    }
    arrays.tokens = Array::own(tokens, {d, 2, d});
    arrays.queries = Array::own(queries, {d, d});
    arrays.select = Array::own(std::vector<Index>(static_cast<std::size_t>(d), 0), {d});
  }

  /// The exact answer: W = I/unit, dual 1/(unit ‖I‖_dual) each.
  StoredSolution answer(const std::string& norm, double unit = 1) const {
    const auto n = static_cast<double>(size);
    const auto rows = static_cast<std::size_t>(size);
    StoredSolution s{.norm = norm, .status = "optimal", .W = RowMatrix::Identity(size, size) / unit};
    for (Index i = 0; i < size; ++i) {
      s.row_query.push_back(i);
      s.row_keep.push_back(0);
      s.row_drop.push_back(1);
    }
    s.row_equal.assign(rows, false);
    s.rhs.assign(rows, 1);
    s.slack.assign(rows, 0);
    s.dual.assign(rows, (norm == "nuc" ? 1 : 1 / std::sqrt(n)) / unit);
    s.tolerance = 1e-8;
    s.objective = s.dual_objective = (norm == "nuc" ? n : std::sqrt(n)) / unit;
    s.select = Selection::single(std::vector<Index>(rows, 0)).mask(2);
    s.relax.assign(rows, false);
    if (norm == "nuc") {
      s.K = s.Q = RowMatrix::Identity(size, size) / std::sqrt(unit);
      s.has_factors = true;
    }
    return s;
  }

  Index size;
  TaskArrays arrays{};
};

TEST(VerifyRules, ExactOptimaAreExact) {
  for (const std::string norm : {"fro", "nuc"}) {
    for (const double unit : {1.0, 0x1p-400, 0x1p400}) {
      SCOPED_TRACE(norm);
      const Diagonal diagonal(4, unit);
      const Verification verdict = verify(AttentionTask(diagonal.arrays), diagonal.answer(norm, unit));
      EXPECT_TRUE(verdict.valid) << verdict.reason;
      EXPECT_EQ(verdict.objective, (norm == "nuc" ? 4 : 2) / unit);
      EXPECT_EQ(verdict.dual_objective, verdict.objective);
      EXPECT_EQ(verdict.gap, 0);
      EXPECT_EQ(verdict.violation, 0);
      EXPECT_EQ(verdict.arithmetic, "ball, 128 bits");
      EXPECT_EQ(verdict.rank.value_or(4), 4);
    }
  }
}

TEST(VerifyRules, EachRuleAloneRefuses) {
  const Diagonal diagonal(4);
  const AttentionTask task(diagonal.arrays);
  const auto refused = [&](const std::string& norm, const std::string& word,
                           const std::function<void(StoredSolution&)>& forge) {
    StoredSolution s = diagonal.answer(norm);
    ASSERT_TRUE(verify(task, s).valid) << verify(task, s).reason;
    forge(s);
    expect_refused(task, s, word);
  };
  const auto restate = [](StoredSolution& s, double factor) {  // scales W and all numbers about it but the bound
    s.W *= factor;
    s.objective *= factor;
    for (std::size_t k = 0; k < s.slack.size(); ++k) s.slack[k] = s.W(static_cast<Index>(k), static_cast<Index>(k)) - 1;
  };
  refused("fro", "row 2", [](StoredSolution& s) { s.rhs[2] = 2; });
  refused("fro", "must not be negative", [](StoredSolution& s) {  // W stays optimal, the bound stays as stated
    s.dual[0] = -s.dual[0];
  });
  refused("fro", "W[0,1] is not finite", [](StoredSolution& s) { s.W(0, 1) = kNaN; });
  refused("fro", "violates", [&](StoredSolution& s) { restate(s, 1 - 1e-7); });
  refused("fro", "slack[1]", [](StoredSolution& s) { s.slack[1] = 1e-7; });
  refused("fro", "objective is", [](StoredSolution& s) { s.objective *= 1 + 1e-8; });
  refused("fro", "dual_objective is", [](StoredSolution& s) { s.dual_objective *= 1 - 1e-8; });
  refused("fro", "bound is above the objective", [&](StoredSolution& s) {  // although rows are met to 1e-9
    restate(s, 1 - 5e-10);
  });
  refused("fro", "above the objective 2", [](StoredSolution& s) { s.dual_objective *= 1 + 5e-10; });
  refused("fro", "the gap is", [&](StoredSolution& s) { restate(s, 1 + 1e-6); });
  refused("fro", "dual norm", [](StoredSolution& s) {
    for (double& weight : s.dual) weight *= 2;
  });
  refused("fro", "tolerance is", [](StoredSolution& s) { s.tolerance = 0; });
  refused("fro", "tolerance is", [](StoredSolution& s) { s.tolerance = kNaN; });
  refused("fro", "status 'good'", [](StoredSolution& s) { s.status = "good"; });
  refused("fro", "K and Q belong", [](StoredSolution& s) { s.has_factors = true; });
  refused("nuc", "K and Q are missing", [](StoredSolution& s) { s.has_factors = false; });
  refused("nuc", "not finite", [](StoredSolution& s) { s.K(1, 1) = kNaN; });
  refused("nuc", "K Q' differs", [](StoredSolution& s) { s.K(1, 0) += 1e-7; });
  refused("nuc", "balanced", [](StoredSolution& s) { s.K *= 2, s.Q /= 2; });
  StoredSolution loose = diagonal.answer("fro");  // the caller's tolerance counts, and only for an optimum
  restate(loose, 1 + 1e-6);
  EXPECT_TRUE(verify(task, loose, {.tolerance = 1e-5}).valid);
  for (const std::string status : {"limit", "stalled"}) {
    loose.status = status;
    EXPECT_TRUE(verify(task, loose).valid) << verify(task, loose).reason;
  }
}

/// Rows (1, ε) w ≥ 1 and (−1, ε) w ≥ 1: w = (0, 1/ε). Rounding of so large a w explains what this one misses, and a
/// weaker bound does not contradict it; but the w in the file is not optimal.
TEST(VerifyRules, WhatRowsMissCountsInTheGap) {
  constexpr double kSmall = 0x1p-42, kTilt = 25 * 0x1p-53;
  TaskArrays arrays;
  arrays.tokens = Array::own(std::vector<double>{1, kSmall, 0, 0, -1, kSmall, 0, 0}, {2, 2, 2});
  arrays.queries = Array::own(std::vector<double>{1, 1}, {2, 1});
  arrays.select = Array::own(std::vector<Index>{0, 0}, {2});
  const AttentionTask task(arrays);
  StoredSolution s = Diagonal(2).answer("fro");
  s.W = RowMatrix::Zero(2, 1);
  s.W(1, 0) = 0x1p42;
  s.dual = {0x1p41, 0x1p41};
  s.objective = s.dual_objective = 0x1p42;
  ASSERT_TRUE(verify(task, s).valid) << verify(task, s).reason;
  const double length = std::hypot(2 * kTilt, kSmall);
  s.dual = {(0.5 + kTilt) / length, (0.5 - kTilt) / length};
  const double sum = s.dual[0] + s.dual[1], norm = std::hypot(s.dual[0] - s.dual[1], kSmall * sum);
  s.objective = s.dual_objective = s.W(1, 0) = sum / norm;
  s.slack.assign(2, kSmall * s.W(1, 0) - 1);
  const Verification verdict = verify(task, s);
  EXPECT_NEAR(verdict.scaling, 1 / (kSmall * s.W(1, 0)) - 1, 1e-12);
  EXPECT_NEAR(verdict.gap, verdict.scaling, 1e-12);
  expect_refused(task, s, "the gap is 0.000298");
}

/// The equation w₁ = 0 and the row w₁ + ε w₂ ≥ 1: w = (0, 1/ε). A w₁ of rounding's size meets the row with less.
TEST(VerifyRules, TheMatrixNearbyHasToMeetTheRowsToo) {
  constexpr double kSmall = 1e-8, kOff = 1.5e-7;
  TaskArrays arrays;
  arrays.tokens = Array::own(std::vector<double>{0, 0, -1, 0, -1, -kSmall}, {1, 3, 2});
  arrays.queries = Array::own(std::vector<double>{1}, {1, 1});
  arrays.select = Array::own(std::vector<bool>{true, true, false}, {1, 3});
  const AttentionTask task(arrays);
  const MarginProblem problem = test::selected(task);
  Threads threads(1);
  StoredSolution s = stored(problem, solve(problem, {}, threads), 1e-8);
  ASSERT_TRUE(verify(task, s).valid) << verify(task, s).reason;
  s.W << kOff, (1 - kOff) / kSmall;
  s.slack = {kOff, kOff + kSmall * s.W(1, 0) - 1};
  const double weight = (1 - kOff) / kSmall, tilt = std::sqrt(1 - std::pow(1 - kOff, 2)) + 1e-8;
  s.dual = {tilt - weight, weight};
  s.objective = s.W.norm();
  s.dual_objective = weight / std::hypot(s.dual[0] + weight, kSmall * weight);
  expect_refused(task, s, "the gap is");
}

/// W has singular values 1 and 1e-9, and its row needs the second one.
TEST(VerifyRules, SmallSingularValuesCountAsRank) {
  Diagonal diagonal(2);
  std::vector<double> tokens(8, 0);
  tokens[0] = 1;
  tokens[5] = 1e9;
  diagonal.arrays.tokens = Array::own(tokens, {2, 2, 2});
  const AttentionTask task(diagonal.arrays);
  StoredSolution s = diagonal.answer("nuc");
  s.W << 1, 0, 0, 1e-9;
  s.dual = {1, 1e-9};
  s.objective = s.dual_objective = 1 + 1e-9;
  s.K.resize(2, 2);
  s.K << 1, 0, 0, std::sqrt(1e-9);
  s.Q = s.K;
  ASSERT_TRUE(verify(task, s).valid) << verify(task, s).reason;
  s.K = s.Q = RowMatrix::Identity(2, 1);
  expect_refused(task, s, "K Q' differs from W");
}

/// Equations that say nothing do not keep verify from looking at the others; many that say something do, and it says
/// so.
TEST(VerifyRules, SaysWhatItLeftOut) {
  const auto task_with = [](Index more, bool distinct) {
    const Index T = more + 1;  // query 0 keeps all its tokens, query 1 the first one
    std::vector<double> tokens(static_cast<std::size_t>(2 * T * 2), 0);
    for (Index t = 1; t < T; ++t) {
      tokens[static_cast<std::size_t>(2 * t)] = distinct ? static_cast<double>(t) : 0;
      tokens[static_cast<std::size_t>(2 * (T + t))] = 1 + static_cast<double>(t);
      tokens[static_cast<std::size_t>(2 * (T + t) + 1)] = -1;
    }
    std::vector<bool> select(static_cast<std::size_t>(2 * T), false);
    std::fill_n(select.begin(), T, true);
    select[static_cast<std::size_t>(T)] = true;
    TaskArrays arrays;
    arrays.tokens = Array::own(tokens, {2, T, 2});
    arrays.queries = Array::own(std::vector<double>{1, 1}, {2, 1});
    arrays.select = Array::own(select, {2, T});
    return AttentionTask(arrays);
  };
  Threads threads(1);
  for (const bool distinct : {false, true}) {
    const AttentionTask task = task_with(310, distinct);
    const MarginProblem problem = test::selected(task);
    StoredSolution s = stored(problem, solve(problem, {}, threads), 1e-8);
    if (distinct) s.W(0, 0) += 1e-18;  // an equation is missed by rounding
    const Verification verdict = verify(task, s);
    EXPECT_EQ(verdict.remark.empty(), !distinct) << verdict.remark << verdict.reason;
  }
}

/// One row: W = e₁e₁ᵀ has rank one, whatever K and Q pretend.
TEST(VerifyRules, ColumnsBeyondTheRankAreRefused) {
  Diagonal diagonal(2);
  std::vector<double> tokens(8, 0), queries{1, 0, 1, 0};
  tokens[0] = tokens[4] = 1;
  diagonal.arrays.tokens = Array::own(tokens, {2, 2, 2});
  diagonal.arrays.queries = Array::own(queries, {2, 2});
  const AttentionTask task(diagonal.arrays);
  StoredSolution s = diagonal.answer("nuc");
  s.W << 1, 0, 0, 0;
  s.dual = {0.5, 0.5};
  s.objective = s.dual_objective = 1;
  s.K = s.Q = RowMatrix::Identity(2, 1);
  Verification verdict = verify(task, s);
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_EQ(verdict.rank, 1);
  s.K = s.Q = RowMatrix::Identity(2, 2);
  s.K(1, 1) = s.Q(1, 1) = 0;
  expect_refused(task, s, "column 1 of K or Q is zero");
  s.K.setZero();
  s.K.row(0).setConstant(std::sqrt(0.5));
  s.Q = s.K;
  expect_refused(task, s, "that singular value of W is at most");
}

/// Rows x ≥ 1 and −x ≥ 1: only a file with the documented contents is accepted as their certificate.
TEST(VerifyRules, CertificatesHoldNothingElse) {
  Diagonal diagonal(2);
  std::vector<double> tokens(8, 0), queries{1, 0, 1, 0};
  tokens[0] = 1;
  tokens[4] = -1;
  diagonal.arrays.tokens = Array::own(tokens, {2, 2, 2});
  diagonal.arrays.queries = Array::own(queries, {2, 2});
  const AttentionTask task(diagonal.arrays);
  StoredSolution good = diagonal.answer("nuc");
  good.status = "infeasible";
  good.W.setZero();
  good.dual = {0.5, 0.5};
  good.slack = {-1, -1};
  good.objective = good.dual_objective = kNaN;
  good.K = good.Q = RowMatrix(2, 0);
  const Verification verdict = verify(task, good);
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_GE(verdict.norm_bound, 1e30);
  const auto refused = [&](const std::string& word, const std::function<void(StoredSolution&)>& forge) {
    StoredSolution s = good;
    forge(s);
    expect_refused(task, s, word);
  };
  refused("W is not zero", [](StoredSolution& s) { s.W(1, 1) = 1e-300; });
  refused("not finite", [](StoredSolution& s) { s.W(1, 1) = kNaN; });
  refused("slack[1]", [](StoredSolution& s) { s.slack[1] = 0; });
  refused("must be NaN", [](StoredSolution& s) { s.objective = 1; });
  refused("must be NaN", [](StoredSolution& s) { s.dual_objective = 1; });
  refused("columns", [](StoredSolution& s) { s.K = s.Q = RowMatrix::Zero(2, 1); });
  refused("missing", [](StoredSolution& s) { s.has_factors = false; });
  refused("belong to nuclear", [](StoredSolution& s) { s.norm = "fro"; });
  refused("rhs'dual", [](StoredSolution& s) { s.dual = {0.5, 0.5 + 1e-8}; });
  refused("the certificate proves", [](StoredSolution& s) { s.dual = {0.5 + 1e-10, 0.5 - 1e-10}; });
}

/// Beyond 1e8 multiplications doubles with error bounds give the same verdict.
TEST(VerifyRules, LargeProblemsAreBoundedInDoubles) {
  const Index n = 64, d = 900;
  std::vector<double> tokens(static_cast<std::size_t>(n * 2 * d), 0), queries(static_cast<std::size_t>(n * d), 0);
  for (Index i = 0; i < n; ++i) {
    tokens[static_cast<std::size_t>(2 * d * i + i)] = 1;
    queries[static_cast<std::size_t>(d * i + i)] = 1;
  }
  TaskArrays arrays;
  arrays.tokens = Array::own(tokens, {n, 2, d});
  arrays.queries = Array::own(queries, {n, d});
  arrays.select = Array::own(std::vector<Index>(static_cast<std::size_t>(n), 0), {n});
  const AttentionTask task(arrays);
  StoredSolution s = Diagonal(n).answer("fro");
  s.W = RowMatrix::Zero(d, d);
  s.W.topLeftCorner(n, n).setIdentity();
  Verification verdict = verify(task, s);
  EXPECT_TRUE(verdict.valid) << verdict.reason;
  EXPECT_EQ(verdict.arithmetic, "double with error bounds");
  EXPECT_NEAR(verdict.objective, 8, 1e-12);
  EXPECT_LE(verdict.dual_objective, 8);
  EXPECT_GE(verdict.dual_objective, 8 - 1e-12);
  s.W(3, 3) = 1 - 1e-6;
  s.slack[3] = -1e-6;
  expect_refused(task, s, "violates row 3");
}

}  // namespace
}  // namespace attsvm
