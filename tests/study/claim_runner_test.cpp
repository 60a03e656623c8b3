#include "study/claim_runner.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <atomic>
#include <memory>

#include "ranks/memory_wire.h"
#include "support.h"

namespace attsvm {
namespace {

using test::Scratch;

/// Everything but the time it took.
std::string words_of(const std::vector<TestedClaim>& all) {
  std::string words;
  for (const TestedClaim& one : all) {
    words += fmt::format("{} {}/{} {} {} {} {}\n", one.claim->name, one.held, one.tasks, one.worst, one.complete,
                         one.words, one.example);
    for (const ClaimFigure& figure : one.figures) words += fmt::format("{} {}\n", figure.label, figure.value);
  }
  return words;
}

std::vector<const Claim*> some_claims() {
  std::vector<const Claim*> list;
  for (const char* name : {"rank", "global", "direction", "separability"}) list.push_back(find_claims(name).front());
  return list;
}

ClaimsOptions options_for(const std::string& store) { return {.tasks = 40, .seed = 3, .store = store}; }

/// The same, stopped when it asks for the `asks`th time.
ClaimsOptions stopping(const std::string& store, int asks) {
  ClaimsOptions options = options_for(store);
  options.stopped = [asks, asked = std::make_shared<std::atomic<int>>(0)] { return ++*asked > asks; };
  return options;
}

TEST(ClaimRunner, StopsLeaveNoTrace) {
  const Scratch scratch;
  Threads threads(2);
  const auto list = some_claims();
  const std::vector<TestedClaim> calm = test_claims(list, options_for(scratch.file("calm")), threads);
  ASSERT_EQ(calm.size(), list.size());
  EXPECT_FALSE(calm[1].example.empty());
  const std::string whole = words_of(calm), file = scratch.file("parts");
  int calls = 0;
  for (std::size_t done = 0; done < list.size(); ++calls) {
    ASSERT_LT(calls, 30);
    const std::vector<TestedClaim> part = test_claims(list, stopping(file, 4 + calls), threads);
    done =
        static_cast<std::size_t>(std::count_if(part.begin(), part.end(), [](const auto& one) { return one.complete; }));
    if (done == list.size()) {
      EXPECT_EQ(words_of(part), whole);
    }
  }
  EXPECT_GT(calls, 3);
  EXPECT_EQ(words_of(test_claims(list, options_for(file), threads)), whole);
  ClaimsOptions fresh = options_for(file);
  fresh.resume = false;
  fresh.time_limit = 1e-9;
  EXPECT_TRUE(test_claims(list, fresh, threads).empty());
  EXPECT_EQ(words_of(test_claims(list, options_for(file), threads)), whole);
}

TEST(ClaimRunner, RanksLeaveNoTrace) {
  const Scratch scratch;
  Threads one(1);
  const auto list = some_claims();
  const std::string whole = words_of(test_claims(list, options_for(scratch.file("calm")), one));
  for (const int count : {2, 5}) {
    const std::string file = scratch.file(std::to_string(count));
    for (const int asks : {10, 1'000'000}) {  // the second job goes on from what the first one stored
      test::on_ranks(count, [&](Ranks& crew) {
        Threads threads(1);
        const std::vector<TestedClaim> found = test_claims(list, stopping(file, asks), threads, crew);
        if (crew.first() && asks > 10) {
          EXPECT_EQ(words_of(found), whole) << count;
        }
        return 0;
      });
    }
    EXPECT_EQ(words_of(test_claims(list, options_for(file), one)), whole);
  }
}

TEST(ClaimRunner, SettingsAreKeptApart) {
  const Scratch scratch;
  Threads threads(2);
  const std::vector<const Claim*> list{find_claims("rank").front()};
  const std::string file = scratch.file("runs");
  const auto with = [&](Index tasks, std::uint64_t seed) {
    return words_of(test_claims(list, {.tasks = tasks, .seed = seed, .store = file}, threads));
  };
  const auto afresh = [&](Index tasks, std::uint64_t seed) {
    return words_of(
        test_claims(list, {.tasks = tasks, .seed = seed, .store = scratch.file("other"), .resume = false}, threads));
  };
  for (const auto& [tasks, seed] : {std::pair<Index, std::uint64_t>{40, 0}, {40, 1}, {41, 0}, {80, 0}, {40, 0}})
    EXPECT_EQ(with(tasks, seed), afresh(tasks, seed));
}

void execute(const std::string& file, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  sqlite3_close(database);
}

TEST(ClaimRunner, DamagedBatchesAreRefused) {
  const Scratch scratch;
  Threads threads(1);
  const std::vector<const Claim*> list{find_claims("global").front()};
  ClaimsOptions options{.tasks = 3, .seed = 2, .store = scratch.file("runs")};
  const std::string whole = words_of(test_claims(list, options, threads));
  for (const char* row :
       {"1", "[]", "{}", R"({"numbers": 3, "seconds": 1})", R"({"numbers": "1 2"})",
        R"({"numbers": "1 2", "seconds": "1"})", R"({"numbers": "1 two", "seconds": 1})",
        R"({"numbers": "1 2", "seconds": 1})", R"({"numbers": "1 2", "seconds": 1, "words": "worst"})",
        R"({"numbers": "1 2", "seconds": 1, "words": "worst", "task": "0"})",
        R"({"numbers": "1 2", "seconds": 1, "words": "worst", "task": "0g"})"}) {
    SCOPED_TRACE(row);
    execute(options.store, fmt::format("UPDATE runs SET result = '{}'", row));
    test::expect_refusal([&] { test_claims(list, options, threads); }, {options.store, "is damaged", "'global'"});
  }
  options.resume = false;
  EXPECT_EQ(words_of(test_claims(list, options, threads)), whole);
}

}  // namespace
}  // namespace attsvm
