#include "io/run_store.h"

#include "support.h"

namespace attsvm {
namespace {

using test::expect_refusal;
using test::Scratch;

TEST(RunStore, GivesBackWhatItWasGiven) {
  const Scratch scratch;
  const RunKey key{.experiment = "e", .settings = "{}", .version = "1", .seed = ~std::uint64_t{0}};
  {
    RunStore store(scratch.file("runs"));
    const auto set = store.find(key);
    const std::vector<RunRow> rows{{"", {{"x", 0.1}}}, {"no", Json::object()}};
    store.commit(set, 0, rows);
    store.commit(set, 3, rows);  // rows after a gap are not used
    EXPECT_EQ(store.find(key), set);
    EXPECT_NE(store.find({.experiment = "e", .settings = "{}", .version = "2"}), set);
  }
  RunStore store(scratch.file("runs"));
  const std::vector<RunRow> rows = store.rows(store.find(key));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].result.at("x").get<double>(), 0.1);
  EXPECT_EQ(rows[1].rejection, "no");
  const auto all = store.instances(store.find(key));
  EXPECT_EQ(all.size(), 4U);
  EXPECT_EQ(all.at(4).rejection, "no");
  EXPECT_EQ(store.keys(), (std::vector<RunKey>{key, {.experiment = "e", .settings = "{}", .version = "2"}}));
  store.forget(store.find(key));
  EXPECT_TRUE(store.rows(store.find(key)).empty());
}

TEST(RunStore, BelongsToOneProcessAtATime) {
  const Scratch scratch;
  const RunStore store(scratch.file("runs"));
  expect_refusal([&] { RunStore(scratch.file("runs")); }, {"runs", "another process", "--out"});
}

TEST(RunStore, RefusesFilesThatAreNotStores) {
  const Scratch scratch;
  test::write_contents(scratch.file("text"), std::string(5000, 'x'));
  expect_refusal([&] { RunStore(scratch.file("text")); }, {"text", "not a run store"});
  expect_refusal([&] { RunStore(scratch.file("text"), "do something else"); }, {"do something else"});
  expect_refusal([&] { RunStore(scratch.file("no/such/folder")); }, {"not writable"});
}

}  // namespace
}  // namespace attsvm
