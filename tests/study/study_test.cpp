#include <cmath>

#include "attsvm/error.h"
#include "attsvm/version.h"
#include "ranks/memory_wire.h"
#include "study/figure.h"
#include "study/output.h"
#include "study/runner.h"
#include "support.h"

namespace attsvm {
namespace {

using test::Scratch;

/// Accepts every third instance; a row depends on its instance alone.
class Thirds final : public Study {
 public:
  StudyFacts facts() const override { return {.name = "thirds"}; }
  std::vector<StudyCell> cells() const override {
    return {{.name = "one", .settings = {{"k", 1}}, .runs = 10, .acceptance = 0.9},
            {.name = "never", .settings = {{"k", 2}}, .runs = 10, .draws_per_run = 2}};
  }
  Index batch() const override { return batch_size; }
  std::vector<StudyRow> run(const StudyCell& cell, const Draws& draws, Threads&) const override {
    std::vector<StudyRow> rows;
    for (Index k = draws.first; k < draws.first + draws.count; ++k) {
      ++computed;
      const bool accepted = cell.name == "one" && k % 3 == 2;
      rows.push_back({accepted ? "" : "not a third",
                      {{"value", std::sqrt(static_cast<double>(k) + static_cast<double>(draws.seed))}}});
    }
    return rows;
  }
  Summary summarise(const std::vector<CellRows>&) const override { return {}; }

  Index batch_size = 64;
  mutable int computed = 0;
};

struct Collected {
  std::vector<CellRows> cells;
  Index reused = 0;
  StudyStop stop = StudyStop::finished;
};

Collected collect(const Study& study, const std::string& file, const StudyOptions& options) {
  RunStore store(file);
  Threads threads(1);
  StudyRunner runner(store, options.seed.value_or(0), options, threads);
  runner.announce(study);
  Collected collected;
  collected.cells = runner.collect(study, collected.reused);
  collected.stop = runner.stop();
  return collected;
}

TEST(StudyRunner, KeepsRowsUpToTheLastAcceptedOne) {
  const Scratch scratch;
  const Thirds study;
  const Collected got = collect(study, scratch.file("runs"), {});
  ASSERT_EQ(got.cells.size(), 2U);
  EXPECT_EQ(got.cells[0].rows.size(), 30U);
  EXPECT_EQ(got.cells[0].accepted(), 10);
  EXPECT_TRUE(got.cells[0].complete);
  EXPECT_EQ(got.cells[1].rows.size(), 20U);  // gives up after two draws per run
  EXPECT_EQ(got.cells[1].accepted(), 0);
  EXPECT_TRUE(got.cells[1].complete);
}

TEST(StudyRunner, PortionsAndInterruptionsLeaveNoTrace) {
  const Scratch scratch;
  Thirds study;
  const std::string whole = runs_csv(collect(study, scratch.file("whole"), {}).cells, 0);
  study.batch_size = 4;
  for (int stop_after = 1; stop_after < 6; ++stop_after) {
    int calls = 0;
    const Collected part =
        collect(study, scratch.file("parts"), {.progress = [&](const StudyProgress&) { return ++calls > stop_after; }});
    if (part.stop == StudyStop::asked) {
      EXPECT_FALSE(part.cells.back().complete);
    }
  }
  const Collected rest = collect(study, scratch.file("parts"), {});
  EXPECT_EQ(runs_csv(rest.cells, 0), whole);
  EXPECT_GT(rest.reused, 0);
  study.computed = 0;
  EXPECT_EQ(collect(study, scratch.file("parts"), {}).reused, 50);
  EXPECT_EQ(study.computed, 0);  // all runs were in the store
  EXPECT_EQ(collect(study, scratch.file("parts"), {.runs = 2}).cells[0].rows.size(), 6U);
  EXPECT_EQ(collect(study, scratch.file("parts"), {.resume = false}).reused, 0);
}

TEST(StudyRunner, RanksLeaveNoTrace) {
  const Scratch scratch;
  Thirds study;
  study.batch_size = 4;
  const std::string whole = runs_csv(collect(study, scratch.file("whole"), {}).cells, 0);
  for (const int count : {2, 3, 4}) {
    const std::string file = scratch.file(std::to_string(count));
    for (const int stop_after : {3, 1000}) {  // the second call goes on from what the first one stored, gaps included
      test::on_ranks(count, [&](Ranks& crew) {
        Threads threads(1);
        Thirds mine;
        mine.batch_size = 4;
        if (!crew.first()) {
          help_studies({&mine}, 0, threads, crew);
          return 0;
        }
        int calls = 0;
        const StudyOptions options{.progress = [&](const StudyProgress&) { return ++calls > stop_after * 1000; }};
        RunStore store(file);
        StudyRunner runner(store, 0, options, threads, crew);
        runner.announce(mine);
        Index reused = 0;
        const auto cells = runner.collect(mine, reused);
        if (runner.stop() == StudyStop::finished) {
          EXPECT_EQ(runs_csv(cells, 0), whole);
        }
        return 0;
      });
    }
    EXPECT_EQ(runs_csv(collect(study, file, {}).cells, 0), whole);
  }
}

class Settings final : public Study {
 public:
  explicit Settings(int k, std::size_t cells = 1) : k_(k), cells_(cells) {}
  StudyFacts facts() const override { return {.name = "settings"}; }
  std::vector<StudyCell> cells() const override {
    return std::vector<StudyCell>(cells_, {.name = "one", .settings = {{"k", k_}}, .runs = 100});
  }
  std::vector<StudyRow> run(const StudyCell&, const Draws& draws, Threads&) const override {
    return std::vector<StudyRow>(static_cast<std::size_t>(draws.count), {"", {{"value", k_}}});
  }
  Summary summarise(const std::vector<CellRows>&) const override { return {}; }

 private:
  int k_;
  std::size_t cells_;
};

TEST(StudyRunner, RanksWithOtherSettingsOrAnotherSeedRefuse) {
  const Scratch scratch;
  const auto codes_with = [&](const Study& theirs, std::uint64_t seed) {
    return test::on_ranks(2, [&](Ranks& crew) {
      Threads threads(1);
      if (!crew.first()) {
        help_studies({&theirs}, seed, threads, crew);
        return 0;
      }
      const Settings mine(1, 2);
      const StudyOptions options{.resume = false};
      RunStore store(scratch.file("runs"));
      StudyRunner runner(store, 0, options, threads, crew);
      runner.announce(mine);
      Index reused = 0;
      try {
        runner.collect(mine, reused);
      } catch (const InputError& error) {
        EXPECT_STREQ(error.what(),
                     "rank 1: the settings or the seed here are not those of rank 0; are the files the same?");
        return 2;
      }
      return 0;
    });
  };
  EXPECT_EQ(codes_with(Settings(1, 2), 0), (std::vector<int>{0, 0}));
  EXPECT_EQ(codes_with(Settings(2, 2), 0), (std::vector<int>{2, 2}));
  EXPECT_EQ(codes_with(Settings(1, 2), 1), (std::vector<int>{2, 2}));
  EXPECT_EQ(codes_with(Settings(1, 0), 0), (std::vector<int>{2, 2}));
}

TEST(StudyRunner, RowsBeyondAGapAreReused) {
  const Scratch scratch;
  Thirds study;
  const std::string whole = runs_csv(collect(study, scratch.file("whole"), {}).cells, 0);
  {
    // What a job on several ranks leaves behind if it is killed while an early portion is still being computed.
    RunStore from(scratch.file("whole")), to(scratch.file("gap"));
    const RunKey key = from.keys().front();
    const std::vector<StudyRow> rows = from.rows(from.find(key));
    to.commit(to.find(key), 5, std::span(rows).subspan(5, 10));
  }
  study.computed = 0;
  const Collected got = collect(study, scratch.file("gap"), {});
  EXPECT_EQ(runs_csv(got.cells, 0), whole);
  EXPECT_EQ(got.reused, 10);
}

TEST(StudyRunner, SeedsAreKeptApart) {
  const Scratch scratch;
  const Thirds study;
  const Collected zero = collect(study, scratch.file("runs"), {}),
                  one = collect(study, scratch.file("runs"), {.seed = 1});
  EXPECT_EQ(one.reused, 0);
  EXPECT_NE(zero.cells[0].rows[0].result, one.cells[0].rows[0].result);
}

TEST(StudyRunner, RowsOfOtherNumbersAreLeftAlone) {
  // The version alone is not enough, because numbers may change between releases too.
  const Scratch scratch;
  const Thirds study;
  {
    RunStore store(scratch.file("runs"));
    for (const StudyCell& cell : study.cells()) {
      const auto set =
          store.find({.experiment = "thirds", .settings = cell.settings.dump(), .version = ATTSVM_VERSION, .seed = 0});
      store.commit(set, 0, std::vector<StudyRow>(50, {"", {{"value", -1}}}));
    }
  }
  const Collected got = collect(study, scratch.file("runs"), {});
  EXPECT_EQ(got.reused, 0);
  EXPECT_EQ(got.cells[0].rows.size(), 30U);
}

TEST(Figure, ForeignTextStaysText) {
  EXPECT_EQ(plain_label("a_b^{c}"), "a\\_b\\^\\{c\\}");
  const Figure figure{.title = "it's",
                      .panels = {{.title = "t", .curves = {{.label = "l", .x = {1, 2}, .y = {NAN, 2}}}}}};
  const std::string script = gnuplot_script(figure, {});
  EXPECT_NE(script.find("'it''s'"), std::string::npos);
  EXPECT_EQ(script, gnuplot_script(figure, {}));
}

TEST(Figure, EmptyFiguresAreDrawnToo) {
  const Scratch scratch;
  const Figure figure{
      .title = "t",
      .panels = {{.title = "p", .curves = {{.label = "l"}}},
                 {.title = "q"},
                 {.title = "r",
                  .log_x = true,
                  .curves = {{.mark = Mark::boxes, .x = {-1}, .y = {1}, .low = {0}, .high = {1}}}},
                 {.title = "s", .curves = {{.mark = Mark::bars, .x = {1}, .y = {1}, .low = {0}, .high = {1}}}}}};
  test::write_contents(scratch.file("figure.gp"), gnuplot_script(figure, {}));
  std::string problem;
  EXPECT_NE(draw_figure(scratch.file("figure.gp"), "svg", problem).find("</svg>"), std::string::npos) << problem;
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  const Table table{.columns = {{"a", ""}, {"b", ""}, {"c", ""}},
                    .rows = {Json::array({0.1, "x,\"y\"", nullptr}), Json::array({NAN, 3, Json::array({1, 2})})}};
  EXPECT_EQ(table_csv(table), "a,b,c\n0.1,\"x,\"\"y\"\"\",\n,3,\"[1,2]\"\n");
}

}  // namespace
}  // namespace attsvm
