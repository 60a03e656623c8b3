// The kernel for small problems, compiled for the CPU, against the CPU's solver; and, where there is a GPU, the GPU.
#include "margin/device/solves.h"

#include "attsvm/device.h"
#include "margin/device/chunk.h"
#include "margin_support.h"

namespace attsvm {
namespace {

using namespace internal;
using test::every_fourth;
using test::expect_near;
using test::of_optimal_tokens;
using test::optimum;
using test::scaled;
using test::selected;
using test::separable;
using test::with_ties;

constexpr std::size_t kShared = 160 << 10;  // bytes, as on the smallest GPU that the kernels are made for

/// The answers of a chunk, computed as by the kernel for `rounds`.
std::vector<double> emulated(const SvmChunk& chunk, std::span<const MarginProblem> problems, int rounds) {
  Threads threads(1);
  std::vector<std::byte> input(chunk.input_bytes());
  std::vector<double> answers(chunk.answer_bytes() / sizeof(double), std::nan(""));
  std::vector<double> memory(chunk.shared_bytes() / sizeof(double), std::nan(""));
  chunk.write(problems, threads, input.data());
  const device::SvmBatch batch = chunk.batch(input.data(), answers.data(), kDeviceGap);
  const auto solve_all = [&]<int kRounds>() {
    for (long long k = 0; k < std::ssize(chunk.problems()); ++k)
      device::solve_one<kRounds>(device::LoopTeam(), batch, k, memory.data());
  };
  switch (rounds) {
    case 1:
      solve_all.operator()<1>();
      break;
    case 2:
      solve_all.operator()<2>();
      break;
    case 3:
      solve_all.operator()<3>();
      break;
    default:
      solve_all.operator()<4>();
  }
  return answers;
}

SvmChunk chunk_of(std::span<const MarginProblem> problems, RoomForAnswer room = RoomForAnswer::usual) {
  SvmChunk chunk(4);
  for (std::size_t k = 0; k < problems.size(); ++k) {
    const device::SvmShape shape = device_shape(problems[k], kShared, room);
    if (shape.rows > 0) chunk.add(k, shape);
  }
  return chunk;
}

/// Expects the answer to be the CPU's, and valid.
void expect_like_cpu(const MarginProblem& problem, const MarginSolution& found) {
  const MarginSolution expected = optimum(problem);
  EXPECT_EQ(found.status, MarginStatus::optimal);
  EXPECT_LE(found.gap, kDeviceGap);
  EXPECT_NEAR(found.objective, expected.objective, 1e-12 * expected.objective);
  EXPECT_EQ(found.support, expected.support);
  EXPECT_EQ(found.unique, expected.unique);
  EXPECT_EQ(found.warm_started, expected.warm_started);
  EXPECT_EQ(found.history.size(), expected.history.size());
  expect_near(found.W, expected.W, 1e-10);
  const Verification verdict = verify(problem.task(), stored(problem, found, kDeviceGap), {.tolerance = kDeviceGap});
  EXPECT_TRUE(verdict.valid) << verdict.reason;
}

std::vector<MarginProblem> assorted() {
  std::vector<MarginProblem> problems;
  for (std::uint32_t k = 0; k < 60; ++k)
    problems.push_back(of_optimal_tokens(generate({.n = 6, .T = 8, .d = 10}, 7, k).task));
  for (std::uint32_t k = 0; k < 20; ++k) {
    problems.push_back(of_optimal_tokens(generate({.n = 5, .T = 7, .d = 9, .shortest = 2}, 8, k).task));
    problems.push_back(of_optimal_tokens(generate({.n = 12, .T = 9, .d = 11}, 9, k).task));
    problems.push_back(of_optimal_tokens(generate({.n = 13, .T = 10, .d = 14}, 9, k).task));
    problems.push_back(of_optimal_tokens(generate({.n = 1, .T = 2, .d = 3}, 9, k).task));
    problems.push_back(
        of_optimal_tokens(generate({.n = 4, .T = 3, .d = 12, .pattern = QueryPattern::prompt}, 9, k).task));
  }
  return problems;
}

TEST(DeviceSolves, TheKernelFindsWhatTheCpuFinds) {
  const std::vector<MarginProblem> problems = assorted();
  const SvmChunk chunk = chunk_of(problems);
  ASSERT_EQ(chunk.problems().size(), problems.size());
  const std::vector<double> answers = emulated(chunk, problems, 4);
  Threads threads(1);
  SolverMemory memory(threads);
  std::size_t solved = 0;
  for (std::size_t k = 0; k < problems.size(); ++k) {
    MarginSolution found;
    const double* answer = chunk.answer(k, reinterpret_cast<const std::byte*>(answers.data()));
    if (!take_answer(problems[k], {}, answer, memory, found)) continue;
    ++solved;
    EXPECT_EQ(found.method, kDeviceMethod);
    expect_like_cpu(problems[k], found);
  }
  EXPECT_EQ(solved, problems.size());
}

TEST(DeviceSolves, NeighboursAndKernelsDoNotChangeBits) {
  const std::vector<MarginProblem> problems = assorted();
  const SvmChunk chunk = chunk_of(problems);
  const std::vector<double> together = emulated(chunk, problems, 4);
  const auto bytes = [](const std::vector<double>& numbers) {
    return reinterpret_cast<const std::byte*>(numbers.data());
  };
  for (std::size_t k = 0; k < problems.size(); ++k) {
    const int fewest = (chunk.shape(k).rows + device::kTeam - 1) / device::kTeam;
    const SvmChunk alone = chunk_of(std::span(problems).subspan(k, 1));
    const std::vector<double> answer = emulated(alone, std::span(problems).subspan(k, 1), fewest);
    const double* other = chunk.answer(k, bytes(together));
    for (const double number : answer) EXPECT_EQ(number, *other++) << "problem " << k;
  }
}

TEST(DeviceSolves, TheKernelLeavesToTheCpuWhatItDoesNotKnow) {
  const auto takes = [](const MarginProblem& problem) {
    return device_shape(problem, kShared, RoomForAnswer::usual).rows > 0;
  };
  const AttentionTask task = separable({.n = 6, .T = 8, .d = 10});
  EXPECT_TRUE(takes(selected(task)));
  EXPECT_TRUE(takes(MarginProblem::value(task, *task.select())));
  EXPECT_FALSE(takes(MarginProblem::attention(task, with_ties(task)))) << "rows that ask for 0";
  EXPECT_FALSE(takes(selected(task, every_fourth(task)))) << "rows that ask for 0";
  EXPECT_FALSE(takes(selected(separable({.n = 19, .T = 8, .d = 10})))) << "too many rows";
  EXPECT_FALSE(takes(selected(separable({.n = 2, .T = 8, .d = 150})))) << "too many numbers";
  EXPECT_FALSE(takes(selected(separable({.n = 2, .T = 1, .d = 3})))) << "no rows";
  Threads threads;
  threads.set_device(Device::cpu);
  EXPECT_EQ(device_for(SolveSettings{}, threads), nullptr);
  threads.set_device(Device::cuda);
  EXPECT_EQ(device_for({.norm = Norm::nuclear()}, threads), nullptr);
  EXPECT_EQ(device_for({.soft = {1}}, threads), nullptr);
  EXPECT_EQ(device_for({.iteration_limit = 3}, threads), nullptr);
}

TEST(DeviceSolves, AnswersThatNeedMoreRoomGetIt) {
  const MarginProblem problem = of_optimal_tokens(generate({.n = 5, .T = 8, .d = 40}, 7).task);
  Threads threads(1);
  SolverMemory memory(threads);
  for (const RoomForAnswer room : {RoomForAnswer::usual, RoomForAnswer::full}) {
    const std::vector<double> answer = emulated(chunk_of(std::span(&problem, 1), room), std::span(&problem, 1), 2);
    MarginSolution found;
    if (room == RoomForAnswer::usual) {
      EXPECT_EQ(SvmChunk::fact(problem, answer.data(), device::kGap), device::kCramped);
      EXPECT_FALSE(take_answer(problem, {}, answer.data(), memory, found));
    } else {
      ASSERT_TRUE(take_answer(problem, {}, answer.data(), memory, found));
      expect_like_cpu(problem, found);
      EXPECT_GT(found.support, 7 * problem.rows() / 10);
    }
  }
}

TEST(DeviceSolves, OnlyProvenAnswersAreTaken) {
  Threads threads(1);
  SolverMemory memory(threads);
  MarginSolution found;
  const auto answers_of = [](const MarginProblem& problem) {
    return emulated(chunk_of(std::span(&problem, 1)), std::span(&problem, 1), 4);
  };
  const auto takes = [&](const MarginProblem& problem, const std::vector<double>& answer) {
    return take_answer(problem, {}, answer.data(), memory, found);
  };
  const AttentionTask task = generate({.n = 6, .T = 8, .d = 10}, 7).task;
  const MarginProblem problem = of_optimal_tokens(task);
  const std::vector<double> answer = answers_of(problem);
  EXPECT_TRUE(takes(problem, answer));
  EXPECT_TRUE(take_answer(problem, {.tolerance = 1e-14}, answer.data(), memory, found));
  EXPECT_FALSE(take_answer(problem, {.tolerance = 1e-30}, answer.data(), memory, found) && found.gap > 0);
  const std::size_t in_W = 0, in_dual = answer.size() - 10;
  for (const auto& [where, damage] : {std::pair(in_W, 1e-3), std::pair(in_dual, 1e-3),
                                      std::pair(in_W, 1e-9)}) {  // which leaves a gap below the tolerance of 1e-8
    std::vector<double> damaged = answer;
    damaged[where] += damage;
    EXPECT_FALSE(takes(problem, damaged)) << where << ", " << damage;
  }
  std::vector<double> unsolved = answer;
  unsolved[unsolved.size() - device::kFacts + device::kGap] = -1;
  EXPECT_FALSE(takes(problem, unsolved));

  const AttentionTask conflict = generate({.law = Law::infeasible, .n = 6, .T = 4, .d = 5}, 1).task;
  EXPECT_FALSE(takes(selected(conflict), answers_of(selected(conflict))));
  for (const double size : {1e-130, 1e130, 0.0}) {  // squares that double cannot hold
    const MarginProblem extreme = of_optimal_tokens(scaled(task, size, 1));
    EXPECT_FALSE(takes(extreme, answers_of(extreme))) << size;
  }
}

TEST(DeviceSolves, AGpuSolvesWhatTheCpuSolves) {
  if (!device_report().found) GTEST_SKIP() << "no GPU to test: " << device_report().words;
  std::vector<MarginProblem> problems = assorted();
  for (std::uint32_t k = 0; k < 700; ++k)  // several chunks, if the card is small
    problems.push_back(of_optimal_tokens(generate({.n = 6, .T = 8, .d = 10}, 11, k).task));
  problems.push_back(of_optimal_tokens(generate({.n = 5, .T = 8, .d = 40}, 7).task));  // needs more room than usual
  const std::size_t taken = problems.size();
  problems.push_back(selected(separable({.n = 19, .T = 8, .d = 10})));
  problems.push_back(selected(generate({.law = Law::infeasible, .n = 6, .T = 4, .d = 5}, 1).task));
  Threads gpu, cpu;
  gpu.set_device(Device::cuda);
  cpu.set_device(Device::cpu);
  const DeviceCounts before = device_counts();
  const std::vector<MarginSolution> found = solve_many(problems, {}, gpu), expected = solve_many(problems, {}, cpu);
  EXPECT_EQ(device_counts().on_gpu, before.on_gpu + taken);
  EXPECT_EQ(device_counts().on_cpu, before.on_cpu + problems.size() - taken);
  for (std::size_t k = 0; k < taken; ++k) {
    EXPECT_EQ(found[k].method, kDeviceMethod) << k;
    expect_like_cpu(problems[k], found[k]);
    if (k % 7 != 0) continue;
    const std::vector<MarginSolution> alone = solve_many(std::span(problems).subspan(k, 1), {}, gpu);
    EXPECT_EQ(alone[0].W, found[k].W) << k;
    EXPECT_EQ(alone[0].dual, found[k].dual) << k;
  }
  for (std::size_t k = taken; k < problems.size(); ++k) {
    EXPECT_EQ(found[k].method, expected[k].method);
    EXPECT_EQ(found[k].W, expected[k].W);
    EXPECT_EQ(found[k].dual, expected[k].dual);
  }
}

TEST(DeviceSolves, AGpuWithoutMemoryLeavesProblemsToTheCpu) {
  if (!device_report().found) GTEST_SKIP() << "no GPU to test: " << device_report().words;
  Cuda* cuda = Cuda::find();
  std::vector<Cuda::Room> taken;
  for (std::size_t bytes = cuda->free_memory(); bytes >= 1024;) {
    try {
      taken.emplace_back(*cuda, bytes);
    } catch (const DeviceError&) {
      bytes /= 2;
    }
  }
  const std::vector<MarginProblem> problems = assorted();
  Threads gpu, cpu;
  gpu.set_device(Device::cuda);
  cpu.set_device(Device::cpu);
  const DeviceCounts before = device_counts();
  const std::vector<MarginSolution> found = solve_many(problems, {}, gpu), expected = solve_many(problems, {}, cpu);
  EXPECT_EQ(device_counts().on_cpu, before.on_cpu + problems.size());
  for (std::size_t k = 0; k < problems.size(); ++k) {
    EXPECT_EQ(found[k].method, expected[k].method);
    EXPECT_EQ(found[k].W, expected[k].W) << k;
  }
}

TEST(DeviceSolves, AGpuIsNotWorthAFewProblems) {
  if (!device_report().found) GTEST_SKIP() << "no GPU to test: " << device_report().words;
  const MarginProblem problem = of_optimal_tokens(generate({.n = 6, .T = 8, .d = 10}, 7).task);
  Threads threads;  // Device::automatic
  EXPECT_NE(solve_many(std::span(&problem, 1), {}, threads)[0].method, kDeviceMethod);
  EXPECT_FALSE(worth_a_device(42 * 42 * 1e4));
  EXPECT_TRUE(worth_a_device(42 * 42 * 1e6));
}

TEST(DeviceSolves, AGpuHasTheBitsOfTheHost) {
  if (!device_report().found) GTEST_SKIP() << "no GPU to test: " << device_report().words;
  const std::vector<MarginProblem> problems = assorted();
  const SvmChunk chunk = chunk_of(problems);
  const std::vector<double> answers = emulated(chunk, problems, 4);
  Threads threads(1), gpu;
  gpu.set_device(Device::cuda);
  const std::vector<MarginSolution> found = solve_many(problems, {}, gpu);
  SolverMemory memory(threads);
  for (std::size_t k = 0; k < problems.size(); ++k) {
    MarginSolution expected;
    ASSERT_TRUE(take_answer(problems[k], {}, chunk.answer(k, reinterpret_cast<const std::byte*>(answers.data())),
                            memory, expected));
    EXPECT_EQ(found[k].W, expected.W) << k;
    EXPECT_EQ(found[k].dual, expected.dual) << k;
    EXPECT_EQ(found[k].iterations, expected.iterations) << k;
  }
}

}  // namespace
}  // namespace attsvm
