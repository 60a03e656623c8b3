// Laws of the nuclear and entrywise optima: the effect of rotating, scaling and exchanging the data.

#include <random>

#include "linear_algebra.h"
#include "margin_support.h"
#include "property/draw.h"

namespace attsvm {
namespace {

using test::any_engine;
using test::any_index;
using test::any_of;
using test::gaussian;
using test::orthogonal;

/// One row per query.
struct Pairs {
  RowMatrix delta, zeta;
  AttentionTask task() const { return test::of_rows(delta, zeta); }
};

Pairs any_separable(std::mt19937_64& engine) {
  const Index n = any_index(1, 12), d = any_index(1, 7), dz = any_index(1, 7);
  Pairs pairs{gaussian(n, d, engine), gaussian(n, dz, engine)};
  const RowMatrix W = gaussian(d, dz, engine);
  for (Index i = 0; i < n; ++i) {
    if (pairs.delta.row(i) * W * pairs.zeta.row(i).transpose() < 0) pairs.delta.row(i) *= -1;
  }
  return pairs;
}

MarginSolution proven(const Pairs& pairs, const Norm& norm) {
  Threads threads(1);
  const AttentionTask task = pairs.task();
  const MarginProblem problem = test::first_kept(task);
  MarginSolution solution = solve(problem, {.norm = norm}, threads);
  const Verification verdict = verify(task, stored(problem, solution, 1e-8));
  if (!verdict.valid || solution.status != MarginStatus::optimal)
    RC_FAIL(norm.name() + ": " + verdict.reason + ", gap " + std::to_string(solution.gap));
  return solution;
}

void expect_objective(double found, double wanted) { RC_ASSERT(std::abs(found - wanted) <= 1e-7 * wanted); }

RC_GTEST_PROP(NuclearLaws, TurningTheDataTurnsTheAnswer, ()) {
  auto engine = any_engine();
  const Pairs pairs = any_separable(engine);
  const RowMatrix U = orthogonal(pairs.delta.cols(), engine), V = orthogonal(pairs.zeta.cols(), engine);
  const MarginSolution plain = proven(pairs, Norm::nuclear());
  const MarginSolution turned = proven({pairs.delta * U, pairs.zeta * V}, Norm::nuclear());
  expect_objective(turned.objective, plain.objective);
  if (plain.rank.certified && turned.rank.certified) {
    RC_ASSERT(plain.rank.rank == turned.rank.rank);
    RC_ASSERT((turned.W - U.transpose() * plain.W * V).norm() <= 1e-4 * plain.objective);
  }
}

RC_GTEST_PROP(NuclearLaws, ExchangingTokensAndQueriesTransposes, ()) {
  auto engine = any_engine();
  const Pairs pairs = any_separable(engine);
  for (const char* name : {"nuc", "lp:1.6", "lp:3"}) {
    const MarginSolution plain = proven(pairs, Norm::parse(name));
    const MarginSolution exchanged = proven({pairs.zeta, pairs.delta}, Norm::parse(name));
    expect_objective(exchanged.objective, plain.objective);
    if (!plain.norm.is_nuclear()) RC_ASSERT((exchanged.W - plain.W.transpose()).norm() <= 1e-3 * plain.objective);
  }
}

RC_GTEST_PROP(NuclearLaws, ScalingTheDataShrinksTheAnswer, ()) {
  auto engine = any_engine();
  const Pairs pairs = any_separable(engine);
  const double factor = any_of({1e-8, 1e-3, 7.0, 1e8});
  for (const char* name : {"nuc", "lp:1.6", "lp:3"}) {
    const MarginSolution plain = proven(pairs, Norm::parse(name));
    expect_objective(proven({pairs.delta * factor, pairs.zeta}, Norm::parse(name)).objective, plain.objective / factor);
    expect_objective(proven({pairs.delta, pairs.zeta * factor}, Norm::parse(name)).objective, plain.objective / factor);
  }
}

RC_GTEST_PROP(NuclearLaws, OrderOfQueriesDoesNotMatter, ()) {
  auto engine = any_engine();
  const Pairs pairs = any_separable(engine);
  const Pairs reversed{pairs.delta.colwise().reverse(), pairs.zeta.colwise().reverse()};
  for (const char* name : {"nuc", "lp:1.6", "lp:3"})
    expect_objective(proven(reversed, Norm::parse(name)).objective, proven(pairs, Norm::parse(name)).objective);
}

RC_GTEST_PROP(NuclearLaws, NormsAreOrdered, ()) {
  auto engine = any_engine();
  const Pairs pairs = any_separable(engine);
  const MarginSolution nuclear = proven(pairs, Norm::nuclear()), frobenius = proven(pairs, Norm::frobenius());
  const double slack = 1 + 1e-8;
  RC_ASSERT(frobenius.objective <= nuclear.W.norm() * slack);
  RC_ASSERT(nuclear.W.norm() <= nuclear.objective * slack);
  RC_ASSERT(nuclear.objective <= std::sqrt(static_cast<double>(nuclear.K.cols())) * nuclear.W.norm() * slack);
  RC_ASSERT(nuclear.objective <= Norm::nuclear().of(frobenius.W) * slack);
  RC_ASSERT(std::abs(proven(pairs, Norm::entrywise(2)).objective - frobenius.objective) <= 1e-8 * frobenius.objective);
}

}  // namespace
}  // namespace attsvm
