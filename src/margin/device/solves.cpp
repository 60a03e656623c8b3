#include "margin/device/solves.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "margin/device/chunk.h"

namespace attsvm::internal {
namespace {

constexpr std::size_t kChunkBytes = 8U << 20;  // that are copied to or from the GPU at a time; measured
constexpr std::size_t kLeastBytes = 1U << 18;  // below which it is not worth it
constexpr double kShare = 0.8;                 // of the card's free memory, at most
constexpr double kWorthwhile = 2.5e8;          // squared rows that take a core about a second
constexpr std::size_t kStreams = 2;
constexpr std::size_t kSized = 4096, kCertified = 16;  // problems that a thread sizes up, or certifies, at a time

enum class Fate : std::uint8_t { open, solved, cramped };

/// The open or cramped problems in chunks for each kernel.
std::vector<SvmChunk> chunks_of(std::span<const MarginProblem> problems, std::span<const Fate> fates, Fate wanted,
                                std::size_t shared, std::size_t bytes, Threads& threads) {
  const RoomForAnswer room = wanted == Fate::cramped ? RoomForAnswer::full : RoomForAnswer::usual;
  std::vector<device::SvmShape> shapes(problems.size());
  const std::size_t portions = (problems.size() + kSized - 1) / kSized;
  threads.for_each(static_cast<std::int64_t>(portions), [&](std::int64_t part) {
    const std::size_t first = static_cast<std::size_t>(part) * kSized;
    for (std::size_t k = first; k < std::min(problems.size(), first + kSized); ++k) {
      if (fates[k] == wanted) shapes[k] = device_shape(problems[k], shared, room);
    }
  });
  std::vector<SvmChunk> chunks;
  for (int rounds = 1; rounds * device::kTeam <= device::kMostRows; ++rounds) {
    bool open = false;
    for (std::size_t k = 0; k < problems.size(); ++k) {
      if ((shapes[k].rows + device::kTeam - 1) / device::kTeam != rounds) continue;
      if (!open) chunks.emplace_back(rounds);
      SvmChunk& chunk = chunks.back();
      chunk.add(k, shapes[k]);
      open = std::max(chunk.input_bytes(), chunk.answer_bytes()) < bytes;
    }
  }
  return chunks;
}

/// What one stream works with.
struct Lane {
  Lane(Cuda& cuda, std::size_t input_bytes, std::size_t answer_bytes)
      : input(cuda, input_bytes),
        answers(cuda, answer_bytes),
        card_input(cuda, input_bytes),
        card_answers(cuda, answer_bytes),
        stream(cuda) {}

  Cuda::Pinned input, answers;
  Cuda::Room card_input, card_answers;
  Cuda::Stream stream;
  const SvmChunk* chunk = nullptr;  // that is under way
};

void start(Cuda& cuda, const SvmChunk& chunk, Lane& lane) {
  lane.card_input.fill(lane.input, chunk.input_bytes(), lane.stream);
  device::SvmBatch batch = chunk.batch(reinterpret_cast<const std::byte*>(lane.card_input.address()),
                                       reinterpret_cast<double*>(lane.card_answers.address()), kDeviceGap);
  std::array<void*, 1> arguments{&batch};
  cuda.launch(fmt::format("solve_svms_{}", chunk.rounds()), static_cast<unsigned>(chunk.problems().size()),
              device::kTeam, arguments.data(), chunk.shared_bytes(), &lane.stream);
  lane.card_answers.read(lane.answers, chunk.answer_bytes(), lane.stream);
  lane.chunk = &chunk;
}

}  // namespace

Cuda* device_for(const SolveSettings& settings, const Threads& threads) {
  if (threads.device() == Device::cpu || !settings.norm.is_frobenius() || !settings.soft.empty() ||
      settings.iteration_limit > 0)
    return nullptr;
  return Cuda::find();
}

bool worth_a_device(double squared_rows) { return squared_rows >= kWorthwhile; }

bool take_answer(const MarginProblem& problem, const SolveSettings& settings, const double* answer,
                 SolverMemory& memory, MarginSolution& solution) {
  const Index entries = problem.d() * problem.dz(), rows = problem.rows();
  if (!(SvmChunk::fact(problem, answer, device::kGap) >= 0)) return false;
  StopRule stop(settings);
  solution.penalty.clear();
  solution.xi.resize(0);
  Pursuit pursuit(memory, problem, settings.norm, settings.tolerance, nullptr, stop, solution);
  MarginSolution& candidate = pursuit.fresh();
  candidate.W = Eigen::Map<const RowMatrix>(answer, problem.d(), problem.dz());
  candidate.dual = ConstVector(answer + entries, rows);
  pursuit.offer(kDeviceMethod, static_cast<Index>(SvmChunk::fact(problem, answer, device::kTries)));
  if (!pursuit.settled || !(solution.gap <= kDeviceGap)) return false;
  solution.iterations = pursuit.iterations;
  solution.warm_started = false;
  solution.history.push_back({solution.iterations, solution.objective, solution.dual_objective, stop.seconds()});
  return true;
}

namespace {

/// What a thread certifies with.
struct Worker {
  Threads alone{1};
  SolverMemory memory{alone};
};

/// Solves the problems of one call.
class DeviceCall {
 public:
  DeviceCall(Cuda& cuda, std::span<const MarginProblem> problems, const SolveSettings& settings, Threads& threads,
             std::span<MarginSolution> solutions)
      : cuda_(cuda),
        problems_(problems),
        settings_(settings),
        threads_(threads),
        solutions_(solutions),
        fates_(problems.size(), Fate::open),
        workers_(static_cast<std::size_t>(threads.count())) {}

  /// Solves the open or cramped problems, two chunks at a time: one on the card, one in the hands of the CPU.
  void run(Fate wanted) {
    const double free = kShare * static_cast<double>(cuda_.free_memory()) / (2 * kStreams);
    const auto bytes = static_cast<std::size_t>(std::min(free, static_cast<double>(kChunkBytes)));
    if (bytes < kLeastBytes) throw DeviceError("the GPU has too little free memory");
    const std::vector<SvmChunk> chunks = chunks_of(problems_, fates_, wanted, cuda_.shared_memory(), bytes, threads_);
    std::size_t input_bytes = 0, answer_bytes = 0;
    for (const SvmChunk& chunk : chunks) {
      input_bytes = std::max(input_bytes, chunk.input_bytes());
      answer_bytes = std::max(answer_bytes, chunk.answer_bytes());
    }
    std::array<std::optional<Lane>, kStreams> lanes;
    for (std::size_t k = 0; k < std::min(kStreams, chunks.size()); ++k)
      lanes[k].emplace(cuda_, input_bytes, answer_bytes);
    for (std::size_t k = 0; k < chunks.size() + kStreams; ++k) {
      std::optional<Lane>& lane = lanes[k % kStreams];
      if (!lane) continue;
      if (lane->chunk != nullptr) finish(*lane);
      if (k >= chunks.size()) continue;
      chunks[k].write(problems_, threads_, lane->input.data());
      start(cuda_, chunks[k], *lane);
    }
  }

  Fate fate(std::size_t problem) const { return fates_[problem]; }
  std::ptrdiff_t count(Fate fate) const { return std::count(fates_.begin(), fates_.end(), fate); }

 private:
  void finish(Lane& lane) {
    lane.stream.wait();
    const SvmChunk& chunk = *std::exchange(lane.chunk, nullptr);
    std::atomic<std::size_t> next = 0;
    threads_.for_each(threads_.count(), [&](std::int64_t turn) {
      std::unique_ptr<Worker>& worker = workers_[static_cast<std::size_t>(turn)];
      if (!worker) worker = std::make_unique<Worker>();
      for (std::size_t first;
           (first = next.fetch_add(kCertified, std::memory_order_relaxed)) < chunk.problems().size();) {
        for (std::size_t k = first; k < std::min(chunk.problems().size(), first + kCertified); ++k) {
          const std::size_t at = chunk.problems()[k];
          const double* answer = chunk.answer(k, lane.answers.data());
          if (SvmChunk::fact(problems_[at], answer, device::kGap) == device::kCramped) {
            fates_[at] = Fate::cramped;
          } else if (take_answer(problems_[at], settings_, answer, worker->memory, solutions_[at])) {
            fates_[at] = Fate::solved;
          }
        }
      }
    });
  }

  Cuda& cuda_;
  std::span<const MarginProblem> problems_;
  const SolveSettings& settings_;
  Threads& threads_;
  std::span<MarginSolution> solutions_;
  std::vector<Fate> fates_;
  std::vector<std::unique_ptr<Worker>> workers_;  // one per turn of a loop over the threads
};

}  // namespace

std::vector<std::uint8_t> solve_on_device(Cuda& cuda, std::span<const MarginProblem> problems,
                                          const SolveSettings& settings, Threads& threads,
                                          std::span<MarginSolution> solutions) {
  DeviceCall call(cuda, problems, settings, threads, solutions);
  try {
    call.run(Fate::open);
    if (call.count(Fate::cramped) > 0) call.run(Fate::cramped);
  } catch (const DeviceError&) {  // what is not solved is left to the CPU
  }
  std::vector<std::uint8_t> solved(problems.size(), 0);
  for (std::size_t k = 0; k < solved.size(); ++k) solved[k] = call.fate(k) == Fate::solved ? 1 : 0;
  return solved;
}

}  // namespace attsvm::internal
