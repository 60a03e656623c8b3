// A task with a mask against the same task without the tokens that its queries do not see.
#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "margin_support.h"
#include "theory/selections.h"

namespace attsvm {
namespace {

using test::expect_refusal;
using test::optimum;
using test::proven;

enum class Mask : std::uint8_t { left_padding, window, random, one_for_all };

std::vector<std::vector<Index>> draw(const AttentionTask& task, Mask mask, std::uint64_t seed) {
  const Random random(seed, 0, 7);
  std::vector<std::vector<Index>> seen;
  for (Index i = 0; i < task.queries(); ++i) {
    const Index T = task.length(task.sequence(i));
    const auto draw_below = [&](Index most, Index k) {
      return static_cast<Index>(random.below(static_cast<std::uint64_t>(most), static_cast<std::uint64_t>(i * 64 + k)));
    };
    seen.emplace_back();
    const Index first = mask == Mask::left_padding || mask == Mask::window ? draw_below(T, 0) : 0;
    const Index last = mask == Mask::window ? std::min(T, first + 3) : T;
    for (Index t = first; t < last; ++t) {
      const bool shown = mask == Mask::random        ? draw_below(3, 1 + t) > 0
                         : mask == Mask::one_for_all ? t % 3 != 1
                                                     : true;
      if (shown) seen.back().push_back(t);
    }
    if (seen.back().empty()) seen.back().push_back(T - 1);
  }
  return seen;
}

AttentionTask masked(const AttentionTask& task, const std::vector<std::vector<Index>>& seen) {
  TaskArrays arrays = task.arrays();
  arrays.select = {};
  arrays.visible = Selection::sets(seen).mask(task.longest());
  return AttentionTask(arrays);
}

/// Every query has a sequence of its own, of the tokens that it sees.
AttentionTask removed(const AttentionTask& task, const std::vector<std::vector<Index>>& seen) {
  std::vector<Index> offsets{0};
  for (const auto& tokens : seen) offsets.push_back(offsets.back() + static_cast<Index>(tokens.size()));
  RowMatrix keys(offsets.back(), task.key_size()), values(offsets.back(), task.value_size());
  RowMatrix queries(task.queries(), task.query_size());
  for (Index i = 0; i < task.queries(); ++i) {
    queries.row(i) = task.query(i).transpose();
    Index row = offsets[static_cast<std::size_t>(i)];
    for (const Index t : seen[static_cast<std::size_t>(i)]) {
      keys.row(row) = task.keys(task.sequence(i)).row(t);
      values.row(row++) = task.values(task.sequence(i)).row(t);
    }
  }
  TaskArrays arrays = task.arrays();
  const auto count = static_cast<Index>(offsets.size());
  arrays.tokens = Array::own(values);
  arrays.offsets = Array::own(std::move(offsets), {count});
  if (task.keys_differ()) arrays.keys = Array::own(keys);
  arrays.queries = task.kind() == AttentionKind::prompt ? Array{} : Array::own(queries);
  arrays.query_token = arrays.sequence = arrays.visible = arrays.select = {};
  return AttentionTask(arrays);
}

/// The same tokens, as the task with the mask counts them.
Selection translated(const Selection& selection, const std::vector<std::vector<Index>>& seen) {
  std::vector<std::vector<Index>> kept;
  for (Index i = 0; i < selection.queries(); ++i) {
    kept.emplace_back();
    for (const Index k : selection.kept(i))
      kept.back().push_back(seen[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)]);
  }
  return Selection::sets(kept);
}

struct Pair {
  std::vector<std::vector<Index>> seen;
  AttentionTask masked, removed;

  Index token(Index query, Index place) const {
    return seen[static_cast<std::size_t>(query)][static_cast<std::size_t>(place)];
  }
};

Pair pair_of(const AttentionTask& task, Mask mask, std::uint64_t seed = 1) {
  auto seen = draw(task, mask, seed);
  AttentionTask with = masked(task, seen), without = removed(task, seen);
  return {std::move(seen), std::move(with), std::move(without)};
}

constexpr std::array kMasks{Mask::left_padding, Mask::window, Mask::random, Mask::one_for_all};

AttentionTask drawn(QueryPattern pattern, std::uint64_t seed) {
  return generate({.n = 4, .T = 9, .d = 20, .shortest = 4, .pattern = pattern}, seed).task;
}

/// The same keys and values, which differ from each other.
AttentionTask with_keys(const AttentionTask& task) {
  TaskArrays arrays = task.arrays();
  arrays.keys = arrays.tokens;
  RowMatrix values(task.tokens(), task.value_size());
  for (Index s = 0; s < task.sequences(); ++s)
    values.middleRows(task.offset(s), task.length(s)) = -0.5 * task.values(s).rowwise().reverse();
  arrays.tokens = Array::own(values);
  arrays.tokens.shape = arrays.keys.shape;
  return AttentionTask(arrays);
}

void expect_same_answer(const Pair& pair, const Selection& kept, const SolveSettings& settings,
                        std::span<const Index> relax = {}) {
  const MarginProblem with = MarginProblem::attention(pair.masked, translated(kept, pair.seen), relax);
  const MarginProblem without = MarginProblem::attention(pair.removed, kept, relax);
  const MarginSolution a = proven(with, settings), b = proven(without, settings);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.W, b.W);
  EXPECT_EQ(a.dual, b.dual);
  EXPECT_EQ(a.slack, b.slack);
  const StoredSolution x = stored(with, a, settings.tolerance), y = stored(without, b, settings.tolerance);
  ASSERT_EQ(x.row_query, y.row_query);
  EXPECT_EQ(x.rhs, y.rhs);
  EXPECT_EQ(x.row_equal, y.row_equal);
  for (std::size_t k = 0; k < x.row_query.size(); ++k) {
    EXPECT_EQ(x.row_keep[k], pair.token(x.row_query[k], y.row_keep[k]));
    EXPECT_EQ(x.row_drop[k], pair.token(x.row_query[k], y.row_drop[k]));
  }
  if (a.status == MarginStatus::infeasible) {
    EXPECT_EQ(describe_conflict(with, a.dual, 3).size(), describe_conflict(without, b.dual, 3).size());
  }
}

TEST(Mask, ATaskSeesWhatItsMaskShows) {
  for (const QueryPattern pattern : {QueryPattern::cross, QueryPattern::causal, QueryPattern::prompt}) {
    for (const Mask mask : kMasks) {
      for (const AttentionTask& task : {drawn(pattern, 3), with_keys(drawn(pattern, 3))}) {
        const Pair pair = pair_of(task, mask);
        ASSERT_EQ(pair.masked.visible().total(), pair.removed.tokens());
        for (Index i = 0; i < task.queries(); ++i) {
          EXPECT_EQ(pair.masked.seen_keys(i), pair.removed.keys(i));
          EXPECT_EQ(pair.masked.seen_values(i), pair.removed.values(i));
          const auto seen = pair.masked.seen(i);
          EXPECT_EQ(std::vector<Index>(seen.begin(), seen.end()), pair.seen[static_cast<std::size_t>(i)]);
          for (Index t = 0; t < task.longest(); ++t) {
            EXPECT_EQ(pair.masked.visible().sees(i, t), std::count(seen.begin(), seen.end(), t) == 1);
          }
        }
      }
    }
  }
}

TEST(Mask, OnlyGapsAreCopied) {
  const AttentionTask task = drawn(QueryPattern::causal, 3);
  EXPECT_TRUE(pair_of(task, Mask::left_padding).masked.copied().empty());
  EXPECT_TRUE(pair_of(task, Mask::window).masked.copied().empty());
  const AttentionTask same = pair_of(task, Mask::one_for_all).masked;  // many queries, one list per sequence
  Index longest_lists = 0;
  for (Index s = 0; s < task.sequences(); ++s) longest_lists += task.length(s) - (task.length(s) + 1) / 3;
  EXPECT_EQ(static_cast<Index>(same.copied().size()), longest_lists);
  EXPECT_TRUE(same.masked());
  TaskArrays arrays = task.arrays();
  arrays.visible = Array::own(std::vector<bool>(static_cast<std::size_t>(task.queries() * task.longest()), true),
                              {task.queries(), task.longest()});
  EXPECT_FALSE(AttentionTask(arrays).causal());  // what lies beyond a sequence does not count
  EXPECT_FALSE(AttentionTask(arrays).masked());
}

TEST(Mask, SolvesAreThoseWithoutTheHiddenTokens) {
  for (const Mask mask : kMasks) {
    for (const QueryPattern pattern : {QueryPattern::cross, QueryPattern::self, QueryPattern::prompt}) {
      const Pair pair = pair_of(drawn(pattern, 5), mask, 2);
      const Selection kept = optimal_tokens(pair.removed).selection;
      EXPECT_EQ(optimal_tokens(pair.masked).selection, translated(kept, pair.seen));
      for (const char* norm : {"fro", "nuc", "spec", "max", "l1"})
        expect_same_answer(pair, kept, {.norm = Norm::parse(norm)});
      expect_same_answer(pair, kept, {}, std::vector<Index>{1, 2});
    }
    const Pair causal = pair_of(drawn(QueryPattern::causal, 6), mask, 3);  // many rows in few unknowns: infeasible
    expect_same_answer(causal, optimal_tokens(causal.removed).selection, {});
    std::vector<std::vector<Index>> sets;
    for (Index i = 0; i < causal.removed.queries(); ++i) {
      sets.push_back({0});
      if (causal.removed.visible(i) > 2) sets.back().push_back(2);
    }
    expect_same_answer(causal, Selection::sets(sets), {});
  }
}

TEST(Mask, LargeSolvesAreThoseWithoutTheHiddenTokens) {
  const AttentionTask task = test::separable({.n = 60, .T = 64, .d = 40, .rank = 3});
  for (const Mask mask : {Mask::window, Mask::random}) {
    auto seen = draw(task, mask, 4);
    for (Index i = 0; i < task.queries(); ++i) {  // the selected token stays, and windows become long
      auto& tokens = seen[static_cast<std::size_t>(i)];
      const Index kept = task.select()->first(i);
      if (mask == Mask::window) {
        tokens.clear();
        for (Index t = std::max<Index>(0, kept - 20 - i % 7); t < std::min<Index>(64, kept + 25); ++t)
          tokens.push_back(t);
      } else if (std::find(tokens.begin(), tokens.end(), kept) == tokens.end()) {
        tokens.insert(std::upper_bound(tokens.begin(), tokens.end(), kept), kept);
      }
    }
    const Pair pair{seen, masked(task, seen), removed(task, seen)};
    std::vector<Index> kept;
    for (Index i = 0; i < task.queries(); ++i) {
      const auto& tokens = seen[static_cast<std::size_t>(i)];
      kept.push_back(std::find(tokens.begin(), tokens.end(), task.select()->first(i)) - tokens.begin());
    }
    ASSERT_GT(MarginProblem::attention(pair.removed, Selection::single(kept)).rows(), 1500);  // read in streams
    expect_same_answer(pair, Selection::single(kept), {});
    expect_same_answer(pair, Selection::single(kept), {.norm = Norm::nuclear(), .tolerance = 1e-6});
  }
}

TEST(Mask, RunsAreThoseWithoutTheHiddenTokens) {
  Threads threads(2);
  for (const Mask mask : kMasks) {
    const Pair pair = pair_of(with_keys(drawn(QueryPattern::causal, 8)), mask, 5);
    std::vector<TrainSettings> many{{}, {.arithmetic = Arithmetic::plain}};
    many.push_back({.param = Parametrization::KQ, .optimizer = Optimizer::adam});
    many.push_back({.optimizer = Optimizer::gd, .dropout = 0.3, .batch = 5});
    many.push_back({.joint = true, .optimizer = Optimizer::gd});
    many.push_back({.optimizer = Optimizer::polyak, .arithmetic = Arithmetic::plain});
    for (TrainSettings settings : many) {
      settings.steps = 60;
      settings.record = {.every = 20};
      const TrainedRun a = train(pair.masked, settings, threads), b = train(pair.removed, settings, threads);
      EXPECT_EQ(a.W, b.W) << words_of(settings);
      EXPECT_EQ(a.loss, b.loss);
      ASSERT_EQ(a.records.size(), b.records.size());
      for (std::size_t k = 0; k < a.records.size(); ++k) {
        EXPECT_EQ(a.records[k].W, b.records[k].W);
        EXPECT_EQ(a.records[k].log_gradient, b.records[k].log_gradient);
      }
      const AttentionMap x = attention_map(pair.masked, a.W, threads), y = attention_map(pair.removed, b.W, threads);
      for (Index i = 0; i < pair.masked.queries(); ++i) {
        EXPECT_EQ(x.selected[static_cast<std::size_t>(i)], pair.token(i, y.selected[static_cast<std::size_t>(i)]));
        Index place = 0;
        for (Index t = 0; t < pair.masked.longest(); ++t) {
          EXPECT_EQ(x.log_weights(i, t), pair.masked.visible().sees(i, t) ? y.log_weights(i, place++) : -INFINITY);
        }
      }
      EXPECT_EQ(mean_weight(pair.masked, a.W, x.selected, threads),
                mean_weight(pair.removed, b.W, y.selected, threads));
    }
    const std::vector<AttentionTask> with(3, pair.masked), without(3, pair.removed);
    const auto a = train_many(with, {.steps = 40}, threads), b = train_many(without, {.steps = 40}, threads);
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_EQ(a[k].W, b[k].W);
  }
}

TEST(Mask, ChecksAndPathsAreThoseWithoutTheHiddenTokens) {
  Threads threads(1);
  for (const Mask mask : kMasks) {
    const Pair pair = pair_of(generate({.n = 3, .T = 6, .d = 12}, 9).task, mask, 6);
    const TrainedRun run = train(pair.masked, {.steps = 200}, threads);
    const Check a = check_run(pair.masked, run.W, {}, {}, threads), b = check_run(pair.removed, run.W, {}, {}, threads);
    EXPECT_EQ(a.verdict, b.verdict);
    EXPECT_EQ(a.selection, translated(b.selection, pair.seen));
    ASSERT_EQ(a.shares.size(), b.shares.size());
    for (std::size_t k = 0; k < a.shares.size(); ++k) EXPECT_EQ(a.shares[k].rho, b.shares[k].rho);
    ASSERT_TRUE(a.report && b.report);
    ASSERT_EQ(a.report->support.size(), b.report->support.size());
    for (std::size_t k = 0; k < a.report->support.size(); ++k) {
      EXPECT_EQ(a.report->support[k].token, pair.token(b.report->support[k].query, b.report->support[k].token));
      EXPECT_EQ(a.report->support[k].score_gap, b.report->support[k].score_gap);
    }
    const LocalOptima all = enumerate_local_optima(pair.masked, {}, threads),
                      same = enumerate_local_optima(pair.removed, {}, threads);
    EXPECT_EQ(all.selections, same.selections);
    EXPECT_EQ(all.separable, same.separable);
    ASSERT_EQ(all.locally_optimal.size(), same.locally_optimal.size());
    for (std::size_t k = 0; k < all.locally_optimal.size(); ++k)
      EXPECT_EQ(all.locally_optimal[k], translated(same.locally_optimal[k], pair.seen));
    const PathSettings settings{.radii = {1, 10}, .starts = 2};
    const RegularizationPath with = regularization_path(pair.masked, settings, threads),
                             without = regularization_path(pair.removed, settings, threads);
    for (std::size_t k = 0; k < with.points.size(); ++k) {
      EXPECT_EQ(with.points[k].W, without.points[k].W);
      EXPECT_EQ(with.points[k].log_loss, without.points[k].log_loss);
    }
    const WeightMargin near = margin_of(pair.masked, run.W, {}, {.norms = {}}, threads),
                       far = margin_of(pair.removed, run.W, {}, {.norms = {}}, threads);
    EXPECT_EQ(near.smallest, far.smallest);
    ASSERT_EQ(near.closest.has_value(), far.closest.has_value());
    if (near.closest) {
      EXPECT_EQ(near.closest->drop, pair.token(far.closest->query, far.closest->drop));
    }
  }
}

TEST(Mask, VerifyRefusesRowsOfHiddenTokens) {
  const AttentionTask task = drawn(QueryPattern::cross, 11);
  const auto seen = draw(task, Mask::random, 8);
  const AttentionTask with = masked(task, seen);
  const MarginProblem open = MarginProblem::attention(task, optimal_tokens(with).selection);
  const StoredSolution answer = stored(open, optimum(open), 1e-8);
  EXPECT_TRUE(verify(task, answer).valid);
  const Verification refused = verify(with, answer);
  EXPECT_FALSE(refused.valid);
  EXPECT_NE(refused.reason.find("row"), std::string::npos) << refused.reason;

  const MarginProblem closed = MarginProblem::attention(with, optimal_tokens(with).selection);
  StoredSolution hides = stored(closed, optimum(closed), 1e-8);
  EXPECT_FALSE(verify(task, hides).valid);  // rows are missing
  Index i = 0, t = 0;
  for (; with.visible().sees(i, t); t = (t + 1) % with.longest()) i += t + 1 == with.longest() ? 1 : 0;
  std::vector<bool> select(static_cast<std::size_t>(hides.select.size()));
  for (std::size_t k = 0; k < select.size(); ++k) select[k] = hides.select.data[k] != std::byte{0};
  select[static_cast<std::size_t>(i * with.longest() + t)] = true;
  hides.select = Array::own(select, {with.queries(), with.longest()});
  EXPECT_NE(verify(with, hides).reason.find("does not see"), std::string::npos);
}

TEST(Mask, RefusalsNameTheQuery) {
  const AttentionTask task = generate({.n = 3, .T = 4, .d = 3}, 1).task;
  const auto refused = [&](const std::vector<bool>& mask, const std::vector<Index>& shape,
                           const std::vector<std::string>& words, const Array& select = {}) {
    TaskArrays arrays = task.arrays();
    arrays.visible = Array::own(mask, shape);
    arrays.select = select;
    expect_refusal([&] { AttentionTask{arrays}; }, words);
  };
  std::vector<bool> mask(12, true);
  for (std::size_t t = 4; t < 8; ++t) mask[t] = false;
  refused(mask, {3, 4}, {"visible[1]", "no True"});
  mask[5] = mask[7] = true;
  refused(mask, {3, 4}, {"select[1] = 2", "1, 3"}, Array::own(std::vector<Index>{0, 2, 0}, {3}));
  refused(mask, {4, 3}, {"visible", "(4,3)", "(3,4) bool"});
  refused(mask, {12}, {"visible", "(12)", "(3,4) bool"});
  TaskArrays arrays = task.arrays();
  arrays.visible = Array::own(mask, {3, 4});
  const AttentionTask with(arrays);
  expect_refusal(
      [&] {
        MarginProblem::attention(with, Selection::single(std::vector<Index>{0, 2, 0}));
      },
      {"select[1] keeps token 2"});
}

TEST(Mask, FilesHoldThem) {
  const test::Scratch scratch;
  Threads threads(1);
  const AttentionTask task = drawn(QueryPattern::causal, 12);
  const AttentionTask with = masked(task, draw(task, Mask::random, 9));
  save_task(scratch.file("t.npz"), with, {}, false);
  const AttentionTask again = load_task(scratch.file("t.npz"), threads);
  test::expect_same_task(with, again);
  EXPECT_EQ(fingerprint_of(with), fingerprint_of(again));
  EXPECT_NE(fingerprint_of(with), fingerprint_of(task));
  EXPECT_NE(fingerprint_of(with), fingerprint_of(masked(task, draw(task, Mask::random, 10))));
}

}  // namespace
}  // namespace attsvm
