#include <algorithm>
#include <numeric>
#include <random>

#include "linear_algebra.h"
#include "property/draw.h"

namespace attsvm {
namespace {

using test::any_bool;
using test::any_engine;
using test::any_index;
using test::gaussian;
using test::orthogonal;

using Kept = std::vector<std::vector<Index>>;

/// A cross-attention task as matrices that are easy to change, and the tokens that it keeps.
struct Draft {
  std::vector<RowMatrix> sequences;
  RowMatrix queries;
  Kept kept;

  Index size() const { return queries.rows(); }
  AttentionTask task() const {
    std::vector<double> tokens, asked(queries.data(), queries.data() + queries.size());
    std::vector<Index> offsets{0};
    for (const RowMatrix& X : sequences) {
      tokens.insert(tokens.end(), X.data(), X.data() + X.size());
      offsets.push_back(offsets.back() + X.rows());
    }
    const Index count = offsets.back(), sizes = static_cast<Index>(offsets.size());
    return AttentionTask({.tokens = Array::own(tokens, {count, sequences[0].cols()}),
                          .offsets = Array::own(offsets, {sizes}),
                          .queries = Array::own(asked, {size(), queries.cols()})});
  }
};

/// A draft of random shape whose kept tokens some W keeps with a margin of at least 1, before W is scaled down.
Draft any_separable() {
  Draft draft;
  auto engine = any_engine();
  const Index n = any_index(1, 9), d = any_index(1, 7), dz = any_index(1, 6);
  const RowMatrix W = gaussian(d, dz, engine);
  draft.queries = gaussian(n, dz, engine);
  for (Index i = 0; i < n; ++i) {
    const Index T = std::uniform_int_distribution<Index>(1, 6)(engine);
    RowMatrix X = gaussian(T, d, engine);
    const Eigen::VectorXd logits = X * W * draft.queries.row(i).transpose();
    Index best = 0;
    logits.maxCoeff(&best);
    draft.sequences.push_back(X);
    draft.kept.push_back({best});
  }
  return draft;
}

/// Solves and verifies; fails if the solve ends undecided.
MarginSolution proven(const MarginProblem& problem) {
  Threads threads(1);
  const SolveSettings settings;
  MarginSolution solution = solve(problem, settings, threads);
  const Verification verdict =
      verify(problem.task(), stored(problem, solution, settings.tolerance), {.tolerance = settings.tolerance});
  if (!verdict.valid || !is_settled(solution.status)) {
    RC_FAIL(std::string(name_of(solution.status)) + ": " + verdict.reason + ", gap " + std::to_string(solution.gap) +
            ", violation " + std::to_string(solution.violation) + ", rows " + std::to_string(problem.rows()));
  }
  return solution;
}

MarginSolution proven(const Draft& draft) {
  const AttentionTask task = draft.task();
  return proven(MarginProblem::attention(task, Selection::sets(draft.kept)));
}

/// W is the only minimiser, and problems this small are solved to rounding.
void expect_answer(const Draft& draft, const RowMatrix& W) {
  const MarginSolution solution = proven(draft);
  RC_ASSERT(solution.status == MarginStatus::optimal);
  RC_ASSERT(std::abs(solution.objective - W.norm()) <= 1e-9 * W.norm());
  RC_ASSERT((solution.W - W).norm() <= 1e-7 * W.norm());
}

RC_GTEST_PROP(MarginLaws, TokensMayComeInAnyOrder, ()) {
  Draft draft = any_separable();
  const RowMatrix W = proven(draft).W;
  auto engine = any_engine();
  for (std::size_t i = 0; i < draft.sequences.size(); ++i) {
    RowMatrix& X = draft.sequences[i];
    std::vector<Index> order(static_cast<std::size_t>(X.rows()));
    std::iota(order.begin(), order.end(), Index{0});
    std::shuffle(order.begin(), order.end(), engine);
    const RowMatrix old = X;
    for (std::size_t t = 0; t < order.size(); ++t) X.row(static_cast<Index>(t)) = old.row(order[t]);
    draft.kept[i][0] = std::find(order.begin(), order.end(), draft.kept[i][0]) - order.begin();
  }
  expect_answer(draft, W);
}

RC_GTEST_PROP(MarginLaws, QueriesMayComeInAnyOrder, ()) {
  const Draft draft = any_separable();
  Draft turned = draft;
  std::reverse(turned.sequences.begin(), turned.sequences.end());
  std::reverse(turned.kept.begin(), turned.kept.end());
  turned.queries = draft.queries.colwise().reverse();
  expect_answer(turned, proven(draft).W);
}

RC_GTEST_PROP(MarginLaws, RotatingTheSpacesRotatesW, ()) {
  Draft draft = any_separable();
  const RowMatrix W = proven(draft).W;
  auto engine = any_engine();
  const RowMatrix U = orthogonal(W.rows(), engine), V = orthogonal(W.cols(), engine);
  for (RowMatrix& X : draft.sequences) X = RowMatrix(X * U.transpose());
  draft.queries = RowMatrix(draft.queries * V.transpose());
  expect_answer(draft, U * W * V.transpose());
}

double any_power_of_ten() { return std::pow(10.0, static_cast<double>(any_index(-9, 10))); }

RC_GTEST_PROP(MarginLaws, ScalingTokensScalesW, ()) {
  Draft draft = any_separable();
  const RowMatrix W = proven(draft).W;
  const double s = any_power_of_ten(), r = any_power_of_ten();
  for (RowMatrix& X : draft.sequences) X *= s;
  draft.queries *= r;
  expect_answer(draft, W / s / r);
}

RC_GTEST_PROP(MarginLaws, MovingASequenceChangesNothing, ()) {
  Draft draft = any_separable();
  const RowMatrix W = proven(draft).W;
  auto engine = any_engine();
  for (RowMatrix& X : draft.sequences) X.rowwise() += gaussian(1, X.cols(), engine).row(0);
  expect_answer(draft, W);
}

RC_GTEST_PROP(MarginLaws, SayingARowTwiceChangesNothing, ()) {
  Draft draft = any_separable();
  const RowMatrix W = proven(draft).W;
  const Index copies = any_index(1, 4);
  const auto i = static_cast<std::size_t>(any_index(0, std::ssize(draft.sequences)));
  RowMatrix& X = draft.sequences[i];
  if (X.rows() > 1) {
    const Index dropped = draft.kept[i][0] == 0 ? 1 : 0;
    for (Index c = 0; c < copies; ++c) {
      X.conservativeResize(X.rows() + 1, Eigen::NoChange);
      X.row(X.rows() - 1) = X.row(dropped);
    }
  }
  draft.sequences.push_back(RowMatrix(draft.sequences[i]));
  draft.kept.push_back(std::vector<Index>(draft.kept[i]));
  draft.queries.conservativeResize(draft.size() + 1, Eigen::NoChange);
  draft.queries.row(draft.size() - 1) = draft.queries.row(static_cast<Index>(i));
  expect_answer(draft, W);
}

RC_GTEST_PROP(MarginLaws, AnEasyTokenChangesNothing, ()) {
  Draft draft = any_separable();
  const RowMatrix W = proven(draft).W;
  RC_PRE(W.norm() > 0);
  auto engine = any_engine();
  for (std::size_t i = 0; i < draft.sequences.size(); ++i) {
    RowMatrix& X = draft.sequences[i];
    const Eigen::VectorXd u = W * draft.queries.row(static_cast<Index>(i)).transpose();
    if (u.norm() <= 1e-6 * W.norm()) continue;
    Eigen::RowVectorXd easy = gaussian(1, X.cols(), engine).row(0);  // kept − easy is 1.5 along u
    easy += (X.row(draft.kept[i][0]).dot(u) - easy.dot(u) - 1.5) / u.squaredNorm() * u.transpose();
    X.conservativeResize(X.rows() + 1, Eigen::NoChange);
    X.row(X.rows() - 1) = easy;
  }
  expect_answer(draft, W);
}

RC_GTEST_PROP(MarginLaws, TasksInOrthogonalSpacesAddUp, ()) {
  const Draft a = any_separable(), b = any_separable();
  const RowMatrix Wa = proven(a).W, Wb = proven(b).W;
  const Index d = Wa.rows() + Wb.rows(), dz = Wa.cols() + Wb.cols();
  Draft both;
  both.queries = RowMatrix::Zero(a.size() + b.size(), dz);
  both.queries.topLeftCorner(a.size(), Wa.cols()) = a.queries;
  both.queries.bottomRightCorner(b.size(), Wb.cols()) = b.queries;
  for (const Draft* part : {&a, &b}) {
    for (const RowMatrix& X : part->sequences) {
      RowMatrix wide = RowMatrix::Zero(X.rows(), d);
      (part == &a ? wide.leftCols(X.cols()) : wide.rightCols(X.cols())) = X;
      both.sequences.push_back(wide);
    }
    both.kept.insert(both.kept.end(), part->kept.begin(), part->kept.end());
  }
  RowMatrix W = RowMatrix::Zero(d, dz);
  W.topLeftCorner(Wa.rows(), Wa.cols()) = Wa;
  W.bottomRightCorner(Wb.rows(), Wb.cols()) = Wb;
  expect_answer(both, W);
}

RC_GTEST_PROP(MarginLaws, PromptAttentionIsAQueryOfOne, ()) {
  Draft draft = any_separable();
  draft.queries = RowMatrix::Ones(draft.size(), 1);
  const AttentionTask cross = draft.task();
  TaskArrays arrays = cross.arrays();
  arrays.queries = {};
  const AttentionTask prompt(arrays);
  RC_ASSERT(prompt.kind() == AttentionKind::prompt);
  const MarginSolution a = proven(MarginProblem::attention(cross, Selection::sets(draft.kept)));
  const MarginSolution b = proven(MarginProblem::attention(prompt, Selection::sets(draft.kept)));
  RC_ASSERT(a.status == b.status);
  RC_ASSERT(a.W == b.W);
  RC_ASSERT(a.dual == b.dual);
}

RC_GTEST_PROP(MarginLaws, LargerSetsOfRowsCostMore, ()) {
  Draft draft = any_separable();
  const double all = proven(draft).objective;
  const auto i = static_cast<std::size_t>(any_index(0, std::ssize(draft.sequences)));
  const AttentionTask task = draft.task();
  const auto relax = std::vector<Index>{static_cast<Index>(i)};
  const double relaxed = proven(MarginProblem::attention(task, Selection::sets(draft.kept), relax)).objective;
  RC_ASSERT(relaxed <= all * (1 + 1e-9));
  draft.sequences[i] = RowMatrix(draft.sequences[i].row(draft.kept[i][0]));  // has no rows any more
  draft.kept[i] = {0};
  RC_ASSERT(proven(draft).objective <= relaxed * (1 + 1e-9));
}

/// A degenerate draft: small integers (ties, copies, dependent rows), zero and parallel queries, sets. `taught`: every
/// query keeps all its best tokens under some W, so that there is an answer.
Draft any_degenerate(bool taught) {
  Draft draft;
  auto engine = any_engine();
  const Index n = any_index(1, 25), d = any_index(1, 8), dz = any_index(1, 7);
  const auto spread = static_cast<int>(any_index(1, 5));
  std::uniform_int_distribution<int> integer(-spread, spread);
  std::uniform_int_distribution<Index> length(1, 9);
  const auto integers = [&](Index rows, Index cols) {
    return RowMatrix(RowMatrix::NullaryExpr(rows, cols, [&] { return static_cast<double>(integer(engine)); }));
  };
  draft.queries = integers(n, dz);
  const RowMatrix W = integers(d, dz);
  for (Index i = 0; i < n; ++i) {
    const Index T = length(engine);
    draft.sequences.push_back(integers(T, d));
    const Eigen::VectorXd logits = draft.sequences.back() * W * draft.queries.row(i).transpose();
    std::vector<Index> kept;
    for (Index t = 0; t < T; ++t) {
      if (taught ? logits(t) == logits.maxCoeff() : std::bernoulli_distribution(0.3)(engine)) kept.push_back(t);
    }
    if (kept.empty()) kept.push_back(0);
    draft.kept.push_back(kept);
  }
  return draft;
}

RC_GTEST_PROP(MarginLaws, EveryTaskIsDecidedAndProven, ()) {
  const Draft draft = any_degenerate(any_bool());
  const AttentionTask task = draft.task();
  std::vector<Index> relax;
  for (Index i = 0; i < draft.size(); ++i) {
    if (any_index(0, 4) == 0) relax.push_back(i);
  }
  proven(MarginProblem::attention(task, Selection::sets(draft.kept), relax));
  Kept single = draft.kept;
  for (auto& tokens : single) tokens.resize(1);
  proven(MarginProblem::attention(task, Selection::sets(single), relax));
  proven(MarginProblem::value(task, Selection::sets(single)));
}

/// The same in rotated coordinates, so that dependences and equalities hold only to rounding.
Draft turned(Draft draft) {
  auto engine = any_engine();
  const RowMatrix U = orthogonal(draft.sequences[0].cols(), engine), V = orthogonal(draft.queries.cols(), engine);
  for (RowMatrix& X : draft.sequences) X = RowMatrix(X * U);
  draft.queries = RowMatrix(draft.queries * V);
  return draft;
}

RC_GTEST_PROP(MarginLaws, EveryTurnedTaskIsDecidedAndProven, ()) { proven(turned(any_degenerate(false))); }

RC_GTEST_PROP(MarginLaws, WhatATeacherKeepsCanBeKept, ()) {
  const Draft draft = any_degenerate(true);
  const MarginSolution solution = proven(draft);
  RC_ASSERT(solution.status == MarginStatus::optimal);
  const MarginSolution again = proven(turned(draft));
  RC_ASSERT(again.status == MarginStatus::optimal);
  RC_ASSERT(std::abs(again.objective - solution.objective) <= 1e-9 * solution.objective);
}

/// Nearly dependent rows make W or the multipliers huge. A solve may then end undecided, but what it claims must be
/// true.
RC_GTEST_PROP(MarginLaws, ClaimsHoldNearDegeneracy, ()) {
  Threads threads(1);
  auto engine = any_engine();
  const bool single = any_bool();
  for (int repeat = 0; repeat < 20; ++repeat) {
    Draft draft = any_degenerate(true);
    const double noise = std::pow(10.0, -std::uniform_int_distribution<int>(2, 13)(engine));
    for (RowMatrix& X : draft.sequences) X += noise * gaussian(X.rows(), X.cols(), engine);
    draft.queries += noise * gaussian(draft.queries.rows(), draft.queries.cols(), engine);
    for (auto& kept : draft.kept) kept.resize(single ? 1 : kept.size());
    const AttentionTask task = draft.task();
    const MarginProblem problem = MarginProblem::attention(task, Selection::sets(draft.kept));
    const MarginSolution solution = solve(problem, {}, threads);
    const Verification verdict = verify(task, stored(problem, solution, SolveSettings{}.tolerance));
    const bool claims = is_settled(solution.status) || !std::isnan(solution.gap);
    if (claims && !verdict.valid) {
      RC_FAIL(std::string(name_of(solution.status)) + " at noise " + std::to_string(std::log10(noise)) + ", norm " +
              std::to_string(solution.objective) + ": " + verdict.reason);
    }
  }
}

}  // namespace
}  // namespace attsvm
