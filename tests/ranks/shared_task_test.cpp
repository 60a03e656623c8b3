#include "train/shared_task.h"

#include <fmt/format.h>

#include <cstring>

#include "attsvm/error.h"
#include "attsvm/generate.h"
#include "base/ordered_sum.h"
#include "ranks/memory_wire.h"
#include "ranks/tree.h"
#include "support.h"
#include "task/parts.h"
#include "train/gradient.h"

namespace attsvm {
namespace {

using namespace internal;
using test::on_ranks;

AttentionTask drawn(Index queries) {
  Recipe recipe;
  recipe.n = queries;
  recipe.T = 3;
  recipe.d = 5;
  recipe.dz = 4;
  return generate(recipe, 7).task;
}

/// What a run on ranks gives to rank 0; rank k has the queries from cuts[k] to cuts[k+1], those beyond have none.
template <class Work>
void share(const AttentionTask& task, const std::vector<Index>& cuts, int count, int threads, Work&& work) {
  on_ranks(count, [&](Ranks& ranks) {
    Threads own(threads);
    const auto k = static_cast<std::size_t>(ranks.rank());
    std::optional<AttentionTask> part;
    std::optional<SharedTask> shared;
    if (k + 1 < cuts.size()) {
      part.emplace(part_of(task, cuts[k], cuts[k + 1]));
      shared.emplace(*part);
      shared->first = cuts[k];
      shared->queries = task.queries();
      shared->longest = task.longest();
      for (Index i = 0; i < cuts[k]; ++i) shared->first_weight += static_cast<std::uint64_t>(task.visible(i));
      shared->weights = static_cast<std::uint64_t>(task.visible().total());
      shared->ask = [&](const std::string& job, const std::function<void()>& here) { return ranks.ask(job, here); };
    }
    if (ranks.first()) {
      work(*shared, own, ranks);
    } else {
      TaskMember member(shared ? &*shared : nullptr, own);
      ranks.help([&](const std::string& job) { return member.answer(job); },
                 [&](std::string mine, std::string_view next) { return member.merged(std::move(mine), next); });
    }
    return 0;
  });
}

std::string preparing(const PassSettings& settings) {
  Packer job;
  job.put(Job::passes).put(settings);
  return job.take();
}

void expect_same_bits(const LossGradient& one, const LossGradient& other) {
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * 8) == 0;
  };
  EXPECT_EQ(one.loss, other.loss);
  EXPECT_EQ(one.log_loss, other.log_loss);
  EXPECT_EQ(one.log_excess, other.log_excess);
  EXPECT_EQ(one.W.log_scale, other.W.log_scale);
  EXPECT_TRUE(same(one.W.direction, other.W.direction));
  EXPECT_EQ(one.v.log_scale, other.v.log_scale);
  EXPECT_TRUE(same(one.v.direction, other.v.direction));
}

struct Cut {
  std::vector<Index> cuts;
  int ranks;
};

TEST(SharedTask, AGradientHasTheBitsOfOneProcess) {
  const AttentionTask task = drawn(4100);  // four segments of sums, of 1,025 queries each
  const std::vector<Cut> all{{{0, 1025, 4100}, 2},
                             {{0, 1, 1500, 1501, 4100}, 4},
                             {{0, 4000, 4100}, 5},
                             {{0, 700, 800, 900, 4100}, 4},
                             {{0, 2050, 4100}, 3}};
  std::vector<Index> batch;
  for (Index i = 0; i < task.queries(); i += 2) batch.push_back(i);
  const std::vector<Index> few{5, 1200, 4099};
  for (const double size : {1.0, 1e3, 1e5}) {  // the last one saturates: losses underflow
    const RowMatrix W = size * RowMatrix::Random(5, 4);
    for (const std::vector<Index>& queries : {std::vector<Index>{}, batch, few}) {
      for (const Arithmetic arithmetic : {Arithmetic::exact, Arithmetic::plain}) {
        const PassSettings settings{
            .loss = Loss::exponential, .arithmetic = arithmetic, .head_gradient = true, .excess = true};
        const PassChoice choice{.queries = queries, .dropout = 0.2, .seed = 3, .step = 5};
        Threads alone(1);
        LossGradient one;
        GradientPass(task, settings, alone).evaluate(W, task.head(), choice, one);
        for (const Cut& cut : all) {
          share(task, cut.cuts, cut.ranks, 1 + cut.ranks % 2, [&](const SharedTask& shared, Threads& threads, Ranks&) {
            shared.ask(preparing(settings), [] {});
            LossGradient found;
            GradientPass(shared, settings, threads).evaluate(W, task.head(), choice, found);
            expect_same_bits(one, found);
          });
        }
      }
    }
  }
}

TEST(SharedTask, SumsOverSegmentsAreTheSumsOverQueries) {
  const AttentionTask task = drawn(2100);  // two segments
  Threads threads(2);
  const RowMatrix W = RowMatrix::Random(5, 4);
  LossGradient all;
  GradientPass pass(task, {}, threads);
  pass.evaluate(W, task.head(), {}, all);
  RowMatrix sum = RowMatrix::Zero(5, 4);
  double loss = 0;
  for (Index i = 0; i < task.queries(); ++i) {
    LossGradient one;
    const std::vector<Index> query{i};
    pass.evaluate(W, task.head(), {.queries = query}, one);
    sum += std::exp(one.W.log_scale) * one.W.direction;
    loss += one.loss;
  }
  EXPECT_NEAR(all.loss, loss / 2100, 1e-13 * all.loss);
  EXPECT_LT((std::exp(all.W.log_scale) * all.W.direction - sum / 2100).norm(), 1e-13 * sum.norm() / 2100);
}

TEST(SharedTask, ShardsOfWholeSegmentsSendOneMatrixPerNode) {
  const AttentionTask task = drawn(8 * 1024 + 300);
  // Of eight ranks, rank 0 hears from three: sums are merged on the way.
  for (const int count : {2, 8})
    share(task, even_cuts(task, count), count, 1, [&](const SharedTask& shared, Threads& threads, Ranks& ranks) {
      shared.ask(preparing({}), [] {});
      GradientPass pass(shared, {}, threads);
      LossGradient out;
      pass.evaluate(RowMatrix::Zero(5, 4), task.head(), {}, out);  // computes scores
      const Ranks::Traffic before = ranks.traffic();
      pass.evaluate(RowMatrix::Zero(5, 4), task.head(), {}, out);
      const Ranks::Traffic after = ranks.traffic();
      const std::int64_t matrix = 5 * 4 * 8, rest = 400;  // a letter's other numbers, and the head
      const auto letters = static_cast<std::int64_t>(children_of(0, count).size());
      EXPECT_EQ(after.rounds - before.rounds, 1);
      EXPECT_LT(after.sent - before.sent, letters * (matrix + rest));
      EXPECT_LT(after.received - before.received, letters * (matrix + rest));
      EXPECT_GT(after.received - before.received, letters * matrix);
    });
}

TEST(OrderedSum, TheTreeDoesNotDependOnWhoSummedWhat) {
  struct Text {
    std::string text;
    void add(const Text& other) { text = fmt::format("({}{})", text, other.text); }
  };
  const auto letters = [](OrderedSum<Text>& sum, Index first, Index last) {
    for (Index k = first; k < last; ++k) sum.push({k, 1, {std::string(1, static_cast<char>('a' + k))}});
  };
  for (Index count = 1; count <= 11; ++count) {
    OrderedSum<Text> alone;
    letters(alone, 0, count);
    const std::string expected = alone.total().text;
    if (count == 7) {
      EXPECT_EQ(expected, "(((ab)(cd))((ef)g))");
    }
    for (Index cut = 0; cut <= count; ++cut) {
      for (Index other = cut; other <= count; ++other) {
        OrderedSum<Text> all;
        for (const auto& [first, last] : {std::pair{Index{0}, cut}, {cut, other}, {other, count}}) {
          OrderedSum<Text> own;
          letters(own, first, last);
          for (auto& node : own.nodes()) all.push(std::move(node));
        }
        EXPECT_EQ(all.total().text, expected);
      }
    }
  }
}

TEST(OrderedSum, SegmentsAreAPowerOfTwo) {
  EXPECT_EQ(Segments(1).count(), 1);
  EXPECT_EQ(Segments(2047).count(), 1);
  EXPECT_EQ(Segments(2048).count(), 2);
  EXPECT_EQ(Segments(Index{1} << 40).count(), 1024);
  for (const Index rows : {Index{1}, Index{2047}, Index{2049}, Index{4100}, Index{100'003}}) {
    const Segments segments(rows);
    EXPECT_EQ(segments.end(segments.count() - 1), rows);
    for (Index k = 0; k < segments.count(); ++k) {
      EXPECT_EQ(segments.of(segments.begin(k)), k);
      EXPECT_EQ(segments.of(segments.end(k) - 1), k);
    }
  }
}

TEST(Ranks, ARankThatFailsEndsWhatIsAsked) {
  on_ranks(3, [&](Ranks& ranks) {
    if (ranks.first()) {
      EXPECT_THROW(
          {
            try {
              ranks.ask("job", [] {});
            } catch (const InputError& error) {
              EXPECT_STREQ(error.what(), "rank 2: no shard");
              throw;
            }
          },
          InputError);
      return 2;
    }
    if (ranks.rank() == 2) ranks.fail("no shard");
    ranks.help([](const std::string& job) { return job; });
    return 0;
  });
}

TEST(Parts, EvenCutsHaveWholeSegmentsWhereTheyCan) {
  const Index queries = 40 * 1024;
  const AttentionTask task = drawn(queries);  // 32 segments
  const Segments segments(queries);
  for (const Index count : {3, 4, 32}) {
    for (const Index cut : even_cuts(task, count))
      EXPECT_TRUE(cut == queries || segments.begin(segments.of(cut)) == cut) << cut;
  }
  const std::vector<Index> fine = even_cuts(task, 7);
  for (std::size_t k = 1; k < fine.size(); ++k)
    EXPECT_NEAR(static_cast<double>(fine[k] - fine[k - 1]), static_cast<double>(queries) / 7, 2);
  EXPECT_THROW(even_cuts(task, queries + 1), InputError);
}

}  // namespace
}  // namespace attsvm
