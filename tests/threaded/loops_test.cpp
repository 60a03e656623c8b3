#include <atomic>
#include <numeric>

#include "attsvm/threads.h"
#include "base/finite_mark.h"
#include "base/random.h"
#include "support.h"

namespace attsvm {
namespace {

TEST(ThreadedLoops, EveryChunkRunsOnce) {
  for (const int count : {1, 2, 5}) {
    Threads threads(count);
    EXPECT_EQ(threads.count(), count);
    for (const std::int64_t chunks : {0, 1, 2, 3, 100}) {
      std::vector<int> hits(static_cast<std::size_t>(chunks), 0);
      threads.for_each(chunks, [&](std::int64_t chunk) { ++hits[static_cast<std::size_t>(chunk)]; });
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), chunks);
      for (const int hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

TEST(ThreadedLoops, ManyShortLoopsInARow) {
  Threads threads(4);
  std::atomic<long> sum = 0;
  for (int round = 0; round < 2000; ++round) {
    threads.for_each(5, [&](std::int64_t chunk) { sum += chunk; });
  }
  EXPECT_EQ(sum, 2000 * 10);
}

TEST(ThreadedLoops, TheLowestFailingChunkIsReportedAndTheRestStillRuns) {
  Threads threads(3);
  std::atomic<int> ran = 0;
  try {
    threads.for_each(50, [&](std::int64_t chunk) {
      ++ran;
      if (chunk == 7 || chunk == 31) throw std::runtime_error(std::to_string(chunk));
    });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "7");
  }
  EXPECT_EQ(ran, 50);
  threads.for_each(3, [&](std::int64_t) { ++ran; });
  EXPECT_EQ(ran, 53) << "usable after a failure";
}

TEST(ThreadedLoops, CountMustMakeSense) {
  test::expect_refusal([] { Threads threads(-1); }, {"threads = -1", "at least 1"});
  EXPECT_GE(Threads(0).count(), 1);
}

TEST(ThreadedFiles, ReadingIsTheSameForAnyThreadCount) {
  const test::Scratch scratch;
  std::vector<double> numbers(3'000'000);
  Random(1, 0, 0).normals(numbers);
  write_npz(scratch.file("big.npz"), {{"tokens", Array::view(numbers.data(), {1000, 3, 1000})}}, false);
  for (const int count : {1, 2, 3}) {
    Threads threads(count);
    const Array read = NpzFile(scratch.file("big.npz")).read("tokens", threads);
    EXPECT_TRUE(FiniteMark::of(read));
    EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), f64_span(read).begin()));
  }
}

}  // namespace
}  // namespace attsvm
