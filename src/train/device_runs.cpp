#include "train/device_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/simd.h"
#include "device/product_lane.h"
#include "train/update.h"

namespace attsvm::internal {
namespace {

// Runs of a chunk, at most: a multiple of what an H200 works on at a time at (6,8,10); and bytes of the host per chunk.
constexpr Index kMostAtOnce = 15'840;
constexpr double kMostBytes = 128e6;
constexpr Index kMostSteps = 256;    // per launch, so that a stop is answered soon
constexpr double kWorthwhile = 4e9;  // multiplications that take a core about a second
constexpr double kShare = 0.8;       // of the card's free memory, at most
constexpr Index kTogether = 32;      // runs that a thread of the host prepares at a time

/// The arrays of device::LaneArrays, and those of WholeArrays for K (or W) and for Q, in the order of their memory.
enum ArrayName : std::size_t {
  kX,
  kGamma,
  kGram,
  kVisible,
  kZ,  // tasks
  kReach,
  kAdded,
  kF,
  kC,
  kG,
  kTop,
  kRest,
  kTheta,
  kThetaQ,  // points: copied to the card and back
  kScratch,
  kM,
  kChange,
  kSquares,
  kMean,
  kSquare,
  kBlock,  // of the card alone
  kChangeQ,
  kSquaresQ,
  kMeanQ,
  kSquareQ,
  kBlockQ,
  kArrays
};
constexpr std::array<std::size_t, 4> kParts{kX, kReach, kScratch, kArrays};  // where tasks, points and the rest begin
constexpr bool per_run(std::size_t name) { return name >= kTheta && name != kScratch && name != kM; }

/// What runs of one shape compute on the card, and how they are laid out there.
struct Layout {
  device::AnySizes sizes{};
  std::array<Index, kArrays> numbers{};  // of each array, per query or per run
  std::string kernel{};
  Index lanes = 64, tiles_per_block = 1, threads = 64, per_tile = 1;  // queries of a tile, threads of a block, runs

  Layout(Cuda& cuda, const LaneShape& shape, const TrainSettings& settings) {
    const StepRule rule = rule_of(settings);
    const bool whole = !along_gradient(rule), averages = rule.averages(), adam = rule.kind == StepKind::adam;
    const Index n = shape.n, T = shape.T, d = shape.d, dz = shape.dz, r = whole && shape.r == 0 ? dz : shape.r;
    const Index width = r > 0 ? r : d, moved_dz = whole && shape.r > 0 ? dz : 0, remembered = averages || adam;
    sizes = {.n = static_cast<int>(n),
             .T = static_cast<int>(T),
             .d = static_cast<int>(d),
             .r = static_cast<int>(r),
             .dz = static_cast<int>(moved_dz)};
    const Index K = r > 0 ? d * r : 0, Q = moved_dz * r;
    numbers = {T * d,
               T,
               n,
               1,
               moved_dz,
               width,
               whole ? 0 : width,
               1,
               1,
               d,
               1,
               1,
               K,
               Q,
               T + d + r,
               shape.r,
               K,
               r > 0 ? d : 0,
               remembered * K,
               adam * K,
               remembered * K,
               Q,
               moved_dz,
               remembered * Q,
               adam * Q,
               remembered * Q};
    const std::string form = whole ? "run_entries" : r > 0 ? "run_KQ" : "run_W";
    const std::string fixed = fmt::format("{}_{}_{}_{}{}", form, n, T, d, r > 0 ? fmt::format("_{}", r) : "");
    const std::string split = fmt::format("run_split_{}_4", T <= 16 ? 16 : 20);
    kernel = form + "_any";
    if (cuda.has(fixed)) {
      kernel = fixed;
      lanes = 32;
      tiles_per_block = r > 0 ? 2 : 4;
      threads = lanes * tiles_per_block;
    } else if (r == 0 && !shape.in_cpu_lanes() && n <= 32 && T <= 20 && d <= 32 && cuda.has(split)) {
      // Eight threads per query round differently, so they take only what the CPU's lanes do not.
      kernel = split;
      lanes = 32;
      threads = 8 * lanes;
    }
    per_tile = lanes / n;
  }

  Index tiles(Index runs) const { return (runs + per_tile - 1) / per_tile; }

  /// How many numbers the arrays from `first` to before `last` have for a number of tiles.
  std::size_t size(Index tiles, std::size_t first, std::size_t last) const {
    Index sum = 0;
    for (std::size_t name = first; name < last; ++name) sum += numbers[name] * (per_run(name) ? per_tile : lanes);
    return static_cast<std::size_t>(sum * tiles);
  }
};

device::LaneRule lane_rule(const TrainSettings& settings, Index queries) {
  const StepRule rule = rule_of(settings);
  return {.loss = settings.loss == Loss::logistic      ? device::kLogistic
                  : settings.loss == Loss::exponential ? device::kExponential
                                                       : device::kLinear,
          .normalized = rule.kind == StepKind::steepest,
          .epsilon = rule.epsilon,
          .queries = static_cast<double>(queries)};
}

/// Room for up to `most` runs of one shape that are on the card at the same time, and the chunk of runs that is there.
/// Copies and kernels are those of a stream, so that the host prepares another chunk meanwhile.
class Chunk {
 public:
  Chunk(Cuda& cuda, const LaneShape& shape, const TrainSettings& settings, Index most)
      : cuda_(cuda),
        shape_(shape),
        settings_(settings),
        layout_(cuda, shape, settings),
        rule_(lane_rule(settings, shape.n)),
        entries_(entry_rule(settings, shape.n)),
        tiles_(layout_.tiles(most)),
        tasks_(cuda, bytes(0)),
        points_(cuda, bytes(1)),
        steps_(cuda, kMostSteps * sizeof(device::StepSize)),
        card_{Cuda::Room(cuda, bytes(0)), Cuda::Room(cuda, bytes(1)), Cuda::Room(cuda, bytes(2))},
        card_steps_(cuda, kMostSteps * sizeof(device::StepSize)),
        stream_(cuda) {}

  /// How many runs a chunk should have, with room for two; DeviceError if the card has no room for any.
  static std::size_t most(Cuda& cuda, const LaneShape& shape, const TrainSettings& settings) {
    const Layout layout(cuda, shape, settings);
    const auto bytes = [&](std::size_t last) { return static_cast<double>(layout.size(1, 0, last) * sizeof(double)); };
    const double fitting = kShare * static_cast<double>(cuda.free_memory()) / (2 * bytes(kArrays));
    if (fitting < 1) throw DeviceError("the GPU has too little free memory");
    const double tiles = std::floor(std::min(fitting, std::max(1.0, kMostBytes / bytes(kScratch))));
    return static_cast<std::size_t>(std::min(static_cast<Index>(tiles) * layout.per_tile, kMostAtOnce));
  }

  bool busy() const { return !entrants_.empty(); }

  /// Copies runs to the card and starts them. The chunk must not be busy.
  void begin(std::span<DeviceEntrant> entrants, Threads& threads) {
    entrants_ = entrants;
    tiles_ = layout_.tiles(std::ssize(entrants));
    in_lanes(threads, true, [&](Index run, const DeviceEntrant&, LaneRuns& lane) { put(run, lane.group()); });
    card_[0].fill(tasks_, bytes(0), stream_);
    card_[1].fill(points_, bytes(1), stream_);
    card_[2].clear(stream_);
    step_ = 0;
    advance(0);
  }

  /// Waits for the steps that were started, and starts the next ones. At the end of the runs, writes their results, and
  /// is not busy any more.
  void proceed(Threads& threads) {
    stream_.wait();
    const bool last = step_ == settings_.steps, due = settings_.record.due(step_, settings_.steps);
    const bool asked = !last && settings_.progress && settings_.progress(TrainProgress(step_));
    if (due || last || asked) {
      card_[1].read(points_, bytes(1), stream_);
      stream_.wait();
      in_lanes(threads, false, [&](Index run, const DeviceEntrant& entrant, LaneRuns& lane) {
        get(run, lane.group());
        record(entrant, lane, rest(run), due, last, asked);
      });
    }
    if (!last && !asked) {
      const Index next = settings_.record.next(step_ + 1, settings_.steps);
      return advance(std::min({next < 0 ? settings_.steps : next, settings_.steps, step_ + kMostSteps}));
    }
    for (DeviceEntrant& entrant : entrants_) entrant.done = true;
    entrants_ = {};
  }

 private:
  std::size_t bytes(std::size_t part) const {
    return layout_.size(tiles_, kParts[part], kParts[part + 1]) * sizeof(double);
  }

  /// Calls use(run, entrant, lane) for every run, with its task and start in a lane, as LaneRuns::put() puts them.
  template <class Use>
  void in_lanes(Threads& threads, bool keys, const Use& use) {
    const Index count = std::ssize(entrants_);
    threads.for_each((count + kTogether - 1) / kTogether, [&](Index part) {
      LaneRuns lane(shape_, 1, settings_);
      for (Index run = part * kTogether; run < std::min(count, (part + 1) * kTogether); ++run) {
        const DeviceEntrant& entrant = entrants_[static_cast<std::size_t>(run)];
        lane.put(0, entrant.task, entrant.input, entrant.start, keys);
        use(run, entrant, lane);
      }
    });
  }

  /// Starts steps number step_, …, to−1, at most kMostSteps, and finds the gradients after them.
  void advance(Index to) {
    auto* sizes_of_steps = reinterpret_cast<device::StepSize*>(steps_.data());
    const StepRule rule = rule_of(settings_);
    for (Index step = step_; step < to; ++step) sizes_of_steps[step - step_] = step_size(rule, settings_, step);
    card_steps_.fill(steps_, kMostSteps * sizeof(device::StepSize), stream_);
    const auto at = [&](std::size_t name) -> double* {
      if (layout_.numbers[name] == 0) return nullptr;
      const auto part = static_cast<std::size_t>(name >= kParts[1]) + static_cast<std::size_t>(name >= kParts[2]);
      return reinterpret_cast<double*>(card_[part].address()) + layout_.size(tiles_, kParts[part], name);
    };
    device::LaneArrays arrays{at(kX),
                              at(kGamma),
                              at(kGram),
                              at(kVisible),
                              at(kReach),
                              at(kAdded),
                              at(kF),
                              at(kC),
                              at(kG),
                              at(kTop),
                              at(kRest),
                              at(kScratch),
                              at(kM),
                              at(kZ),
                              {at(kTheta), at(kChange), at(kSquares), at(kMean), at(kSquare), at(kBlock)},
                              {at(kThetaQ), at(kChangeQ), at(kSquaresQ), at(kMeanQ), at(kSquareQ), at(kBlockQ)}};
    const device::StepSize* steps = reinterpret_cast<const device::StepSize*>(card_steps_.address());
    long long runs = std::ssize(entrants_);
    int count = static_cast<int>(to - step_);
    auto number = static_cast<double>(step_);
    std::array<void*, 8> arguments{&arrays, &runs, &rule_, &steps, &count, &number, &layout_.sizes, &entries_};
    cuda_.launch(layout_.kernel,
                 static_cast<unsigned>((tiles_ + layout_.tiles_per_block - 1) / layout_.tiles_per_block),
                 static_cast<unsigned>(layout_.threads), arguments.data(), 0, &stream_);
    step_ = to;
  }

  /// Calls use(number, k) for the numbers of a run, which LaneGroup has as number k.
  template <class Use>
  void copy(Index run, std::size_t name, const Use& use) const {
    const bool task = name < kParts[1];
    double* array = reinterpret_cast<double*>((task ? tasks_ : points_).data()) +
                    layout_.size(tiles_, task ? kParts[0] : kParts[1], name);
    const Index size = layout_.numbers[name], tile = run / layout_.per_tile, slot = run % layout_.per_tile;
    const Index stride = per_run(name) ? layout_.per_tile : layout_.lanes;
    for (Index i = 0; i < (per_run(name) ? 1 : shape_.n); ++i) {
      double* at = array + tile * size * stride + (per_run(name) ? slot : slot * shape_.n + i);
      for (Index k = 0; k < size; ++k) use(at[k * stride], i * size + k);
    }
  }

  /// Copies a run at its start from a group of one lane.
  void put(Index run, const LaneGroup& from) const {
    for (const auto& [name, numbers] : {std::pair{kX, from.X},
                                        {kGamma, from.gamma},
                                        {kGram, from.gram},
                                        {kVisible, from.visible},
                                        {kReach, from.reach},
                                        {kZ, from.Z},
                                        {kTheta, from.K},
                                        {kThetaQ, from.Q}}) {
      copy(run, name, [all = numbers](double& there, Index k) { there = all[k]; });
    }
    copy(run, kAdded, [](double& there, Index) { there = 0; });
    copy(run, kRest, [](double& there, Index) { there = -1; });
  }

  /// Writes the point of a run that came back from the card, and its gradient, into a group of one lane.
  void get(Index run, LaneGroup& to) const {
    for (const auto& [name, numbers] :
         {std::pair{kAdded, to.added}, {kF, to.f}, {kC, to.c}, {kG, to.g}, {kTheta, to.K}, {kThetaQ, to.Q}}) {
      copy(run, name, [all = numbers](const double& there, Index k) { all[k] = there; });
    }
    copy(run, kTop, [&](const double& there, Index) { *to.top = there; });  // the same for all queries
  }

  Index rest(Index run) const {
    Index step = -1;
    copy(run, kRest, [&](const double& there, Index) { step = static_cast<Index>(there); });
    return step;
  }

  /// Takes what a run's lane holds after step_ steps into its result.
  void record(const DeviceEntrant& entrant, const LaneRuns& lane, Index rest, bool due, bool last, bool asked) const {
    TrainedRun& end = entrant.out;
    Parameters point = entrant.start;
    Record here = lane.record(0, step_, point);
    if (due) end.records.push_back(here);
    if (!last && !asked) return;
    end.stop = rest >= 0 ? TrainStop::zero_gradient : TrainStop::finished;
    end.steps = rest >= 0 ? rest : step_;
    if (asked && (rest < 0 || settings_.record.next(step_ + 1, settings_.steps) >= 0)) end.stop = TrainStop::asked;
    end.W = std::move(here.W);
    if (settings_.param == Parametrization::KQ) {
      end.K = point.K();
      end.Q = point.Q();
    }
    end.head = entrant.head;
    end.loss = here.loss;
    end.log_loss = here.log_loss;
    end.norm = here.norm;
    end.log_gradient = here.log_gradient;
  }

  Cuda& cuda_;
  LaneShape shape_;
  const TrainSettings& settings_;
  Layout layout_;
  device::LaneRule rule_;
  device::EntryRule entries_;
  Index tiles_;  // of the chunk
  Cuda::Pinned tasks_, points_, steps_;
  std::array<Cuda::Room, 3> card_;  // tasks, points and the rest
  Cuda::Room card_steps_;
  Cuda::Stream stream_;  // ends before the memory above is freed
  std::span<DeviceEntrant> entrants_{};
  Index step_ = 0;
};

}  // namespace

device::EntryRule entry_rule(const TrainSettings& settings, Index queries) {
  const StepRule rule = rule_of(settings);
  return {.way = rule.kind == StepKind::adam ? device::kAdam : device::kSigns,
          .averages = rule.averages(),
          .past1 = rule.betas[0],
          .past2 = rule.betas[1],
          .epsilon = rule.epsilon,
          .decay = rule.weight_decay,
          .log_queries = std::log(static_cast<double>(queries))};
}

device::StepSize step_size(const StepRule& rule, const TrainSettings& settings, Index step) {
  const auto [b1, b2] = rule.betas;
  const double size = scheduled_step(settings, step), t = static_cast<double>(step + 1);
  return {size, size / (1 - std::pow(b1, t)), 1 / (1 - std::pow(b2, t))};
}

Cuda* device_for(const TrainSettings& settings, const Threads& threads) {
  if (threads.device() == Device::cpu) return nullptr;
  const StepRule rule = rule_of(settings);
  const bool signs = rule.kind == StepKind::steepest && rule.norm == Norm::largest();
  if (!along_gradient(rule) && !signs && rule.kind != StepKind::adam) return nullptr;
  const std::string vectors = chosen_instructions();
  if (threads.device() == Device::automatic && !vectors.starts_with("AVX")) return nullptr;
  return Cuda::find();
}

bool worth_a_device(const LaneShape& shape, const TrainSettings& settings, std::size_t runs) {
  const double per_step = 2.0 * static_cast<double>(shape.n * shape.T * shape.d);
  return per_step * static_cast<double>(settings.steps) * static_cast<double>(runs) >= kWorthwhile;
}

void train_on_device(Cuda& cuda, const TrainSettings& settings, std::span<DeviceEntrant> entrants, Threads& threads) {
  try {
    const LaneShape& shape = entrants[0].input.shape;
    const std::size_t most = std::min(entrants.size(), Chunk::most(cuda, shape, settings));
    // While the card works on one chunk, the host prepares the other, or makes its records.
    std::vector<std::unique_ptr<Chunk>> chunks;
    for (int k = 0; k < (most == entrants.size() ? 1 : 2); ++k)
      chunks.push_back(std::make_unique<Chunk>(cuda, shape, settings, static_cast<Index>(most)));
    std::size_t begun = 0;
    for (bool any = true; any;) {
      any = false;
      for (const std::unique_ptr<Chunk>& chunk : chunks) {
        if (chunk->busy()) chunk->proceed(threads);
        if (!chunk->busy() && begun < entrants.size()) {
          const std::size_t count = std::min(most, entrants.size() - begun);
          chunk->begin(entrants.subspan(begun, count), threads);
          begun += count;
        }
        any = any || chunk->busy();
      }
    }
  } catch (const DeviceError&) {  // the CPU does what is left
    for (DeviceEntrant& entrant : entrants) {
      if (!entrant.done) entrant.out = {};
    }
  }
}

}  // namespace attsvm::internal
