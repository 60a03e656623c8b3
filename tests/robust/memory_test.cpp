#include "base/memory.h"

#include <cmath>

#include "support.h"

namespace attsvm {
namespace {

using test::Scratch;

/// A machine with 8 GB available, as its files say.
class Machine {
 public:
  Machine() { write("proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable: 7812500 kB\nSwapFree: 0 kB\n"); }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((scratch_.folder() / name).parent_path());
    test::write_contents(scratch_.file(name), text);
  }
  double gigabytes() const { return free_memory(scratch_.folder().string()) / 1e9; }

 private:
  Scratch scratch_;
};

TEST(Memory, IsWhatTheMachineHas) { EXPECT_DOUBLE_EQ(Machine().gigabytes(), 8); }

TEST(Memory, IsUnlimitedWhereTheSystemSaysNothing) {
  const Scratch nothing;
  EXPECT_TRUE(std::isinf(free_memory(nothing.folder().string())));
}

TEST(Memory, KeepsToTheControlGroupAndThoseAroundIt) {
  const Machine machine;
  machine.write("proc/self/cgroup", "0::/jobs/mine\n");
  machine.write("sys/fs/cgroup/jobs/mine/memory.max", "max\n");
  machine.write("sys/fs/cgroup/jobs/mine/memory.current", "1000000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 8);
  machine.write("sys/fs/cgroup/jobs/memory.max", "3000000000\n");
  machine.write("sys/fs/cgroup/jobs/memory.current", "2500000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 0.5);
  machine.write("sys/fs/cgroup/jobs/memory.stat", "anon 2300000000\ninactive_file 200000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 0.7);
  machine.write("sys/fs/cgroup/jobs/memory.stat", "inactive_file 200000000\nactive_file 1000000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 1.7);
}

TEST(Memory, KeepsToAContainersGroupWhosePathIsTheMachines) {
  const Machine machine;
  machine.write("proc/self/cgroup", "12:cpu:/docker/a\n4:memory:/docker/a\n0::/docker/a\n");
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000000\n");
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "500000000\n");
  machine.write("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_inactive_file 100000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 1.6);
  machine.write("sys/fs/cgroup/memory/memory.stat",
                "active_file 1\ntotal_inactive_file 100000000\ntotal_active_file 200000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 1.8);
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2500000000\n");
  EXPECT_DOUBLE_EQ(machine.gigabytes(), 0);
}

TEST(Memory, RefusesWithBothNumbers) {
  require_memory(1e6, "W");
  test::expect_refusal([] { require_memory(1e18, "W"); }, {"W needs about 1e+09 GB", " GB are free"});
  test::expect_refusal([] { generate({.n = 100'000, .T = 10'000, .d = 10'000}, 0); }, {"task", "GB are free"});
}

TEST(Memory, IsLookedForBeforeAWThatCannotFit) {
  Threads threads(1);
  constexpr Index kSize = 1'000'000;
  std::vector<double> tokens(2 * kSize, 1), ones(kSize, 1);
  tokens[0] = 2;
  const AttentionTask task({.tokens = Array::own(std::move(tokens), {1, 2, kSize}),
                            .queries = Array::view(ones.data(), {1, kSize}),
                            .head = Array::view(ones.data(), {kSize})});
  const MarginProblem problem = MarginProblem::attention(task, optimal_tokens(task).selection);
  const std::vector<std::string> words{"W of 1000000 x 1000000 needs about ", " GB are free"};
  test::expect_refusal([&] { solve(problem, {}, threads); }, words);
  test::expect_refusal([&] { train(task, {.steps = 1}, threads); }, words);
}

TEST(Memory, IsLookedForBeforeHeadsThatCannotFit) {
  Threads threads(1);
  const AttentionTask task = generate({.n = 2, .T = 3, .d = 10}, 0).task;
  constexpr Index kHeads = 1'000'000'000'000;
  test::expect_refusal([&] { train(task, {.heads = kHeads, .steps = 1}, threads); },
                       {"training 1000000000000 heads, each a W of 10 x 10 needs about ", " GB are free"});
}

}  // namespace
}  // namespace attsvm
