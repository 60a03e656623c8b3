#include "ranks/portions.h"

#include <atomic>
#include <chrono>
#include <new>
#include <set>

#include "attsvm/error.h"
#include "ranks/memory_wire.h"
#include "support.h"

namespace attsvm {
namespace {

using namespace internal;
using test::on_ranks;

/// Squares 0 … 49 on `count` ranks; by portion, as rank 0 got them.
std::map<int, int> squares(Ranks& ranks, const Portions::Work& work) {
  std::map<int, int> found;
  if (!ranks.first()) {
    ranks.help(work);
    return found;
  }
  int next = 0;
  Portions portions(ranks, work);
  portions.run({.next = [&]() -> std::optional<std::string> {
                  if (next == 50) return std::nullopt;
                  return std::to_string(next++);
                },
                .done =
                    [&](const std::string& portion, const std::string& result) {
                      EXPECT_TRUE(found.emplace(std::stoi(portion), std::stoi(result)).second);
                    },
                .over = [] { return false; }});
  return found;
}

std::string square(const std::string& portion) { return std::to_string(std::stoi(portion) * std::stoi(portion)); }

TEST(Portions, AllAreComputedOnceOnAnyNumberOfRanks) {
  for (const int count : {1, 2, 3, 4, 7}) {
    on_ranks(count, [](Ranks& ranks) {
      const auto found = squares(ranks, square);
      EXPECT_EQ(found.size(), ranks.first() ? 50U : 0U);
      for (const auto& [portion, result] : found) EXPECT_EQ(result, portion * portion);
      return 0;
    });
  }
}

TEST(Portions, ASlowRankHoldsNobodyUp) {
  // Rank 1 does not finish its first portion before all that others may have are done.
  std::atomic<int> done = 0, slow = 0;
  on_ranks(3, [&](Ranks& ranks) {
    squares(ranks, [&](const std::string& portion) {
      if (ranks.rank() == 1) {
        ++slow;
        while (done < 48) std::this_thread::yield();
      }
      ++done;
      return square(portion);
    });
    return 0;
  });
  EXPECT_EQ(slow, 2);  // the portion that it computes, and the one that waits for it
}

TEST(Portions, RefusalsOfHelpersReachTheFirstRank) {
  for (const bool before_the_work : {false, true}) {
    const auto codes = on_ranks(3, [&](Ranks& ranks) {
      if (before_the_work && ranks.rank() == 2) {
        ranks.fail("cannot open the file");
        return 2;
      }
      try {
        squares(ranks, [&](const std::string& portion) {
          if (ranks.rank() == 2) throw InputError("cannot open the file");
          return square(portion);
        });
      } catch (const InputError& error) {
        EXPECT_STREQ(error.what(), "rank 2: cannot open the file");
        return 2;
      }
      EXPECT_FALSE(ranks.first());
      return 0;
    });
    EXPECT_EQ(codes, (std::vector<int>{2, 2, 2}));
  }
}

TEST(Portions, AHelperWithoutMemoryIsNoInternalError) {
  const auto codes = on_ranks(2, [&](Ranks& ranks) {
    try {
      squares(ranks, [&](const std::string& portion) {
        if (!ranks.first()) throw std::bad_alloc();
        return square(portion);
      });
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("rank 1: out of memory; ")) << error.what();
      return 2;
    }
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{2, 2}));
}

TEST(Portions, RefusalsOfTheFirstRankEndTheJob) {
  const auto codes = on_ranks(2, [](Ranks& ranks) {
    try {
      squares(ranks, [&](const std::string& portion) {
        if (ranks.first()) throw InputError("no");
        return square(portion);
      });
    } catch (const InputError&) {
      return 2;
    }
    return 0;
  });
  EXPECT_EQ(codes, (std::vector<int>{2, 2}));
}

TEST(Ranks, EndWithTheExitCodeOfTheFirst) {
  EXPECT_EQ(on_ranks(4, [](Ranks& ranks) { return 3 + ranks.rank(); }), (std::vector<int>{3, 3, 3, 3}));
}

TEST(Ranks, RanksThatDifferRefuse) {
  const auto mail = std::make_shared<test::Mail>(3);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      test::MemoryWire wire(mail, rank);
      require_same_on_all(wire, "a", "differs");
      try {
        require_same_on_all(wire, rank == 1 ? "b" : "a", "differs");
        ADD_FAILURE();
      } catch (const InputError& error) {
        EXPECT_STREQ(error.what(), "rank 1 differs");
      }
    });
  }
}

}  // namespace
}  // namespace attsvm
