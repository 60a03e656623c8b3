// What an audit says about heads whose making is known.
#include "attsvm/audit.h"

#include <cmath>
#include <set>

#include "audit/activations.h"
#include "base/random.h"
#include "margin_support.h"

namespace attsvm {
namespace {

constexpr Index kSequences = 16, kLength = 10, kSize = 6;

/// Heads of random weights on random tokens, whose coordinates have unequal sizes: nothing is trained.
HeadSet untrained(Index heads, std::uint64_t seed) {
  const Index tokens = kSequences * kLength, width = 2 * kSize;
  const auto draw = [&](Index rows, Index columns, std::uint32_t stream) {
    RowMatrix numbers(rows, columns);
    Random(seed, 0, stream).normals({numbers.data(), static_cast<std::size_t>(numbers.size())});
    return numbers;
  };
  RowMatrix X = draw(tokens, width, 0);
  for (Index j = 0; j < width; ++j) X.col(j) /= std::sqrt(static_cast<double>(1 + j));
  std::vector<double> keys, queries;
  std::vector<Index> offsets, sequence;
  for (Index h = 0; h < heads; ++h) {
    const auto stream = static_cast<std::uint32_t>(2 * h + 1);
    const RowMatrix K = X * draw(width, kSize, stream), Q = X * draw(width, kSize, stream + 1);
    keys.insert(keys.end(), K.data(), K.data() + K.size());
    queries.insert(queries.end(), Q.data(), Q.data() + Q.size());
  }
  for (Index s = 0; s <= kSequences; ++s) offsets.push_back(s * kLength);
  for (Index i = 0; i < tokens; ++i) sequence.push_back(i / kLength);
  return HeadSet({.keys = Array::own(std::move(keys), {heads, tokens, kSize}),
                  .queries = Array::own(std::move(queries), {heads, tokens, kSize}),
                  .offsets = Array::own(offsets, {kSequences + 1}),
                  .sequence = Array::own(sequence, {tokens})});
}

bool is_within(const NullFacts& facts) { return std::abs(facts.z) <= 3; }

TEST(Audit, UntrainedHeadsAreWithinTheNull) {
  Threads threads(2);
  const Audit result = audit(untrained(60, 1), {.queries = 60, .nulls = 20}, threads);
  ASSERT_TRUE(result.complete);
  Index within_gap = 0, within_rho = 0, views = 0;
  for (const HeadAudit& head : result.heads) {
    for (const ViewAudit& view : head.views) {
      ++views;
      within_gap += is_within(view.gap_over_norm) ? 1 : 0;
      EXPECT_EQ(view.gap_over_norm.draws, 20);
      EXPECT_EQ(view.frobenius.status, "optimal");
      EXPECT_EQ(view.nuclear.status, "optimal");
    }
    within_rho += is_within(head.views.front().rho) ? 1 : 0;
  }
  EXPECT_GE(static_cast<double>(within_gap), 0.95 * static_cast<double>(views));
  EXPECT_GE(static_cast<double>(within_rho), 0.95 * static_cast<double>(result.heads.size()));
}

/// The null keeps the sizes of the head's components in the eigenbases of keys and queries, and gives each a sign that
/// is the product of one of its row and one of its column; both kinds are drawn.
TEST(Audit, TheNullDrawsSignsOnBothSides) {
  const HeadSet heads = untrained(1, 2);
  const HeadView view(heads, 0, false);
  const Activations activations = activations_of(view, view.choices());
  const RowMatrix head = activations.key_axes.transpose() * activations.query_axes;
  std::set<std::vector<int>> left, right;
  for (std::uint32_t draw = 0; draw < 20; ++draw) {
    const RowMatrix W = null_head(activations, 5, 0, draw);
    EXPECT_NEAR(W.norm(), std::sqrt(static_cast<double>(kSize)), 1e-12);
    const RowMatrix sign =
        (activations.key_axes.transpose() * W * activations.query_axes).cwiseQuotient(head).array().round();
    test::expect_near(activations.key_axes.transpose() * W * activations.query_axes, sign.cwiseProduct(head), 1e-9);
    test::expect_near(sign, sign.col(0) * sign.row(0) * sign(0, 0), 0);
    std::vector<int> rows, columns;
    for (Index j = 0; j < kSize; ++j) {
      rows.push_back(static_cast<int>(sign(j, 0) * sign(0, 0)));
      columns.push_back(static_cast<int>(sign(0, j) * sign(0, 0)));
    }
    left.insert(rows);
    right.insert(columns);
  }
  EXPECT_GT(left.size(), 10U);
  EXPECT_GT(right.size(), 10U);
}

TEST(Audit, KeepsWhatItHasAtTheTimeLimit) {
  Threads threads(1);
  const HeadSet heads = untrained(2, 3);
  const AuditSettings settings{.queries = 60, .nulls = 4};
  AuditSettings hurried = settings;
  hurried.time_limit = 1e-9;
  const Audit full = audit(heads, settings, threads), partial = audit(heads, hurried, threads);
  EXPECT_TRUE(full.complete);
  EXPECT_FALSE(partial.complete);
  ASSERT_EQ(partial.heads.size(), full.heads.size());
  for (std::size_t h = 0; h < full.heads.size(); ++h) {
    EXPECT_FALSE(partial.heads[h].complete);
    ASSERT_EQ(partial.heads[h].views.size(), full.heads[h].views.size());
    EXPECT_EQ(partial.heads[h].sink_weight, full.heads[h].sink_weight);
    for (std::size_t v = 0; v < full.heads[h].views.size(); ++v) {
      const ViewAudit &less = partial.heads[h].views[v], &all = full.heads[h].views[v];
      EXPECT_EQ(less.agreement, all.agreement);
      EXPECT_EQ(less.gap.middle, all.gap.middle);
      EXPECT_EQ(less.gap_over_norm.z, all.gap_over_norm.z);
      for (const MarginFacts* facts : {&less.frobenius, &less.nuclear}) EXPECT_EQ(facts->status, "not run");
      EXPECT_EQ(less.rho.draws, 0);
      EXPECT_EQ(less.rank_bound, 0);
      EXPECT_TRUE(less.pairs.empty());
    }
  }
}

/// Asked to stop after the first solve, a head keeps that answer and no other.
TEST(Audit, KeepsTheAnswersBeforeAStop) {
  Threads threads(1);
  const Audit result = audit(
      untrained(1, 3), {.queries = 60, .nulls = 4, .progress = [](const auto& now) { return now.share > 0; }}, threads);
  EXPECT_FALSE(result.complete);
  const ViewAudit &own = result.heads.at(0).views.at(0), &hidden = result.heads.at(0).views.at(1);
  EXPECT_EQ(own.frobenius.status, "optimal");
  EXPECT_FALSE(own.pairs.empty());
  EXPECT_EQ(own.nuclear.status, "not run");
  EXPECT_EQ(own.rho.draws, 0);
  EXPECT_EQ(hidden.frobenius.status, "not run");
}

/// Fixed tokens and targets, and gradients that keep their direction: each optimizer reaches nearly the whole margin in
/// the norm that its theory names, and less in every other.
TEST(Audit, ThePositiveControlShowsTheMatchingNorm) {
  struct Control {
    TrainSettings settings;
    Norm norm;
  };
  const Control controls[] = {
      {{.optimizer = Optimizer::ngd, .steps = 6000}, Norm::frobenius()},
      {{.optimizer = Optimizer::signum, .momentum = 0, .steps = 6000}, Norm::largest()},
      {{.optimizer = Optimizer::muon, .momentum = 0, .steps = 6000}, Norm::spectral()},
      {{.param = Parametrization::KQ, .optimizer = Optimizer::ngd, .steps = 6000}, Norm::nuclear()},
  };
  Threads threads(1);
  const AttentionTask task = generate({.n = 6, .T = 5, .d = 8}, 4).task;
  for (const Control& control : controls) {
    const RowMatrix W = train(task, control.settings, threads).W;
    const MarginProblem problem =
        MarginProblem::attention(task, check_run(task, RunTrace{.W = W}, {}, threads).selection);
    const auto share_in = [&](const Norm& norm) {
      const MarginSolution solution = solve(problem, {.norm = norm}, threads);
      EXPECT_TRUE(verify(task, stored(problem, solution, 1e-8)).valid) << norm.name();
      return margin_share(problem, solution, W);
    };
    const double matching = share_in(control.norm);
    EXPECT_GE(matching, 0.97) << control.norm.name();
    for (const Control& other : controls) {
      if (&other == &control) continue;
      EXPECT_LT(share_in(other.norm), matching) << control.norm.name() << " " << other.norm.name();
    }
  }
}

}  // namespace
}  // namespace attsvm
