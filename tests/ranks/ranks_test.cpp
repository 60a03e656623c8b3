#include "ranks/ranks.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>

#include "attsvm/error.h"
#include "ranks/memory_wire.h"
#include "ranks/slow_wire.h"
#include "ranks/tree.h"
#include "support.h"

namespace attsvm {
namespace {

using namespace internal;
using test::on_ranks;

TEST(Tree, RanksBelowFollowOneAnother) {
  for (const int count : {1, 2, 3, 4, 5, 8, 13, 64}) {
    // Ranks from `first` in the order in which what they have comes together at `first`.
    const std::function<void(int, std::vector<int>&)> below = [&](int first, std::vector<int>& order) {
      order.push_back(first);
      for (const int child : children_of(first, count)) {
        EXPECT_EQ(parent_of(child), first);
        below(child, order);
      }
    };
    std::vector<int> order;
    below(0, order);
    ASSERT_EQ(order.size(), static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank) EXPECT_EQ(order[static_cast<std::size_t>(rank)], rank);
  }
  EXPECT_EQ(children_of(0, 512).size(), 9U);
}

std::string joined(std::string own, std::string_view next) { return own.append(next); }

TEST(Ranks, HaveTheSameTogether) {
  for (const int count : {1, 2, 3, 4, 7, 8}) {
    std::atomic<int> done = 0;
    on_ranks(count, [&](Ranks& ranks) {
      for (int round = 0; round < 20; ++round) {
        const std::string all = ranks.together(fmt::format("{}.{} ", round, ranks.rank()), joined,
                                               [](const std::string& text) { return "all: " + text; });
        std::string expected = "all: ";
        for (int rank = 0; rank < count; ++rank) expected += fmt::format("{}.{} ", round, rank);
        EXPECT_EQ(all, expected);
      }
      ++done;
      return 0;
    });
    EXPECT_EQ(done, count);  // the end of the job overtook nothing
  }
}

TEST(Ranks, NoneSendsMoreThanTheTreeAsks) {
  constexpr int kCount = 8;
  constexpr std::int64_t kMatrix = 1 << 16, kRest = 64;
  on_ranks(kCount, [&](Ranks& ranks) {
    const auto first_matrix = [](std::string own, std::string_view) { return own; };
    const Ranks::Traffic before = ranks.traffic();
    ranks.together(std::string(kMatrix, 'x'), first_matrix);
    const Ranks::Traffic after = ranks.traffic();
    const auto below = static_cast<std::int64_t>(children_of(ranks.rank(), kCount).size());
    const std::int64_t matrices = below + (ranks.first() ? 0 : 1);  // one up, one down to each below
    EXPECT_EQ(after.rounds - before.rounds, 1);
    EXPECT_GE(after.sent - before.sent, matrices * kMatrix);
    EXPECT_LE(after.sent - before.sent, matrices * (kMatrix + kRest));
    EXPECT_LE(after.received - before.received, matrices * (kMatrix + kRest));
    return 0;
  });
}

/// The model of docs/howto/cluster.md: seconds until ranks, a power of two, have so many bytes together.
double modelled(int count, double bytes, const test::Network& network) {
  double levels = 0;
  for (int ranks = 1; ranks < count; ranks *= 2) ++levels;
  return 2 * levels * (network.latency + bytes / network.bandwidth);
}

TEST(Ranks, TakeAsLongAsTheModelSays) {
  constexpr std::size_t kBytes = 20'000;
  // So slow that what this machine does besides hardly counts: mostly latency, mostly bandwidth, both.
  for (const test::Network& network :
       {test::Network{0.02, 1e9}, test::Network{0.0005, 1e6}, test::Network{0.01, 2e6}}) {
    for (const int count : {2, 4, 8}) {
      double least = 1e9;  // what disturbs a round only makes it longer
      on_ranks(
          count,
          [&](Ranks& ranks) {
            const auto merge = [](std::string own, std::string_view /*next*/) { return own; };
            auto before = std::chrono::steady_clock::now();
            for (int round = 0; round < 6; ++round) {
              ranks.together(std::string(kBytes, 'x'), merge);
              const auto now = std::chrono::steady_clock::now();
              // The first round ends for rank 0 when the others have not heard of it yet.
              if (ranks.first() && round > 0)
                least = std::min(least, std::chrono::duration<double>(now - before).count());
              before = now;
            }
            return 0;
          },
          [&](std::shared_ptr<test::Mail> mail, int rank) {
            return std::make_unique<test::SlowWire>(test::memory_wire(std::move(mail), rank), network);
          });
      const double expected = modelled(count, kBytes, network);
      EXPECT_GT(least, 0.9 * expected) << count << " ranks";
      EXPECT_LT(least, 1.5 * expected) << count << " ranks";
    }
  }
}

TEST(Ranks, AnswersComeInTheOrderOfRanks) {
  for (const int count : {1, 2, 3, 6, 8}) {
    for (const bool merging : {false, true}) {
      on_ranks(count, [&](Ranks& ranks) {
        if (!ranks.first()) {
          ranks.help([&](const std::string& job) { return fmt::format("{}{} ", job, ranks.rank()); },
                     merging ? Ranks::Merge(joined) : Ranks::Merge());
          return 0;
        }
        for (const std::string job : {"a", "b"}) {
          const std::vector<std::string> answers = ranks.ask(job, [] {});
          const std::size_t expected = merging ? children_of(0, count).size() : static_cast<std::size_t>(count - 1);
          EXPECT_EQ(answers.size(), expected);
          std::string all, wanted;
          for (const std::string& answer : answers) all += answer;
          for (int rank = 1; rank < count; ++rank) wanted += fmt::format("{}{} ", job, rank);
          EXPECT_EQ(all, wanted);
        }
        return 0;
      });
    }
  }
}

TEST(Ranks, SomeRanksHaveNoPartInIt) {
  for (const int members : {1, 2, 3, 5}) {
    const auto codes = on_ranks(6, [&](Ranks& ranks) {
      ranks.share_among(members);
      if (ranks.rank() >= members) {
        ranks.help([](const std::string& job) { return job; });
        return 0;
      }
      const std::string all = ranks.together(std::to_string(ranks.rank()), joined);
      EXPECT_EQ(all, std::string("012345").substr(0, static_cast<std::size_t>(members)));
      return 3;
    });
    EXPECT_EQ(codes, std::vector<int>(6, 3));
  }
}

TEST(Ranks, RankZeroCollectsInOrder) {
  on_ranks(5, [](Ranks& ranks) {
    std::string all;
    for (int round = 0; round < 3; ++round) {
      ranks.collect(std::to_string(ranks.rank()), [&](int rank, std::string_view bytes) {
        EXPECT_EQ(bytes, std::to_string(rank));
        all += bytes;
      });
    }
    EXPECT_EQ(all, ranks.first() ? "012340123401234" : "");
    return 0;
  });
}

TEST(Ranks, ARankThatFailsEndsWhatIsDoneTogether) {
  for (const int failing : {1, 2, 4, 6, 7}) {
    for (const int rounds : {0, 3}) {
      const auto codes = on_ranks(8, [&](Ranks& ranks) {
        try {
          for (int round = 0;; ++round) {
            if (ranks.rank() == failing && round == rounds) {
              ranks.fail("no shard");
              return 2;
            }
            ranks.together("x", joined);
          }
        } catch (const InputError& error) {
          EXPECT_EQ(std::string(error.what()), fmt::format("rank {}: no shard", failing));
          EXPECT_TRUE(ranks.first());
          return 2;
        }
      });
      EXPECT_EQ(codes, std::vector<int>(8, 2));
    }
  }
}

TEST(Ranks, TheEndOfRankZeroEndsWhatIsDoneTogether) {
  const auto codes = on_ranks(7, [&](Ranks& ranks) {
    for (int round = 0; round < 5 || !ranks.first(); ++round) ranks.together("x", joined);
    return 4;  // as where a disk is full
  });
  EXPECT_EQ(codes, std::vector<int>(7, 4));
}

TEST(Ranks, GivenUpWorkIsNotTakenForLaterWork) {
  on_ranks(6, [](Ranks& ranks) {
    if (!ranks.first()) {
      ranks.help([](const std::string& job) { return job; });
      return 0;
    }
    for (int round = 0; round < 4; ++round) {
      EXPECT_THROW(ranks.ask("old", [] { throw InputError("given up"); }), InputError);
      for (const std::string& answer : ranks.ask("new", [] {})) EXPECT_EQ(answer, "new");
    }
    return 0;
  });
}

}  // namespace
}  // namespace attsvm
