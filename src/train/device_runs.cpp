#include "train/device_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/simd.h"
#include "device/product_lane.h"
#include "train/update.h"

namespace attsvm::internal {
namespace {

constexpr Index kMostAtOnce = 1 << 17;  // runs whose numbers are on the card at a time
constexpr Index kMostSteps = 256;       // per launch, so that a stop is answered soon
constexpr double kWorthwhile = 4e9;     // multiplications that take a core about a second
constexpr double kShare = 0.8;          // of the card's free memory, at most

/// The arrays of device::LaneArrays, and those of WholeArrays for K (or W) and for Q.
enum ArrayName : std::size_t {
  kX,
  kGamma,
  kGram,
  kVisible,
  kReach,
  kAdded,
  kF,
  kC,
  kG,
  kTop,
  kRest,
  kScratch,
  kM,
  kZ,  // per query
  kTheta,
  kChange,
  kSquares,
  kMean,
  kSquare,
  kBlock,  // per run
  kThetaQ,
  kChangeQ,
  kSquaresQ,
  kMeanQ,
  kSquareQ,
  kBlockQ,
  kArrays
};
constexpr bool per_run(std::size_t name) { return name >= kTheta; }

/// What runs of one shape compute on the card, and how they are laid out there.
struct Layout {
  device::AnySizes sizes{};
  std::array<Index, kArrays> numbers{};  // of each array, per query or per run
  std::string kernel{};
  Index lanes = 64, tiles_per_block = 1, per_tile = 1;  // queries of a tile, runs of a tile

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
    numbers = {T * d, T, n, 1, width, whole ? 0 : width, 1, 1, d, 1, 1, T + d + r, shape.r, moved_dz};
    for (const auto& [first, rows] : {std::pair{kTheta, r > 0 ? d : 0}, std::pair{kThetaQ, moved_dz}}) {
      numbers[first] = numbers[first + 1] = rows * r;
      numbers[first + 2] = rows;
      numbers[first + 3] = numbers[first + 5] = remembered * rows * r;
      numbers[first + 4] = adam * rows * r;
    }
    const std::string form = whole ? "run_entries" : r > 0 ? "run_KQ" : "run_W";
    const std::string fixed = fmt::format("{}_{}_{}_{}{}", form, n, T, d, r > 0 ? fmt::format("_{}", r) : "");
    kernel = cuda.has(fixed) ? fixed : form + "_any";
    if (kernel == fixed) {
      lanes = 32;
      tiles_per_block = r > 0 ? 2 : 4;
    }
    per_tile = lanes / n;
  }

  /// How many numbers of an array a tile has.
  Index tile_of(std::size_t name) const { return numbers[name] * (per_run(name) ? per_tile : lanes); }
};

/// One array: on the host, where it is needed there, and on the card.
struct DeviceArray {
  std::vector<double> host{};
  Cuda::Room card{};
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

/// Runs of one shape on the card.
class DeviceRuns {
 public:
  DeviceRuns(Cuda& cuda, const LaneShape& shape, const TrainSettings& settings, Index runs)
      : cuda_(cuda),
        shape_(shape),
        layout_(cuda, shape, settings),
        runs_(runs),
        rule_(lane_rule(settings, shape.n)),
        entries_(entry_rule(settings, shape.n)),
        settings_(settings),
        steps_(cuda, kMostSteps * sizeof(device::StepSize)) {
    const Index tiles = (runs + layout_.per_tile - 1) / layout_.per_tile;
    for (std::size_t name = 0; name < kArrays; ++name) {
      const auto count = static_cast<std::size_t>(layout_.tile_of(name) * tiles);
      if (count == 0) continue;
      arrays_[name].card = Cuda::Room(cuda, count * sizeof(double));
      const bool kept = name == kScratch || name == kM || name == kChange || name == kChangeQ || name == kSquares ||
                        name == kSquaresQ;  // by the card alone
      if (!kept) arrays_[name].host.assign(count, name == kRest ? -1.0 : 0.0);
    }
  }

  /// How many runs of a shape fit into the card's memory at once; DeviceError if it is none.
  static Index fitting(Cuda& cuda, const LaneShape& shape, const TrainSettings& settings) {
    const Layout layout(cuda, shape, settings);
    Index numbers = 0;
    for (std::size_t name = 0; name < kArrays; ++name) numbers += layout.tile_of(name);
    const double tile = static_cast<double>(numbers) * sizeof(double);
    const double tiles = std::floor(kShare * static_cast<double>(cuda.free_memory()) / tile);
    if (tiles < 1) throw DeviceError("the GPU has too little free memory");
    return static_cast<Index>(std::min(tiles, 1e9)) * layout.per_tile;
  }

  /// Copies a run at its start from a group of one lane. Runs may be put by several threads at once.
  void put(Index run, const LaneGroup& from) {
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
  }

  void upload() {
    for (DeviceArray& array : arrays_) {
      if (!array.host.empty()) array.card.fill(array.host.data(), array.host.size() * sizeof(double));
    }
  }

  /// Takes steps number from, …, to−1, at most kMostSteps, and finds the gradients after them. Returns when it is done.
  void advance(Index from, Index to) {
    std::array<device::StepSize, kMostSteps> sizes_of_steps{};
    for (Index step = from; step < to; ++step)
      sizes_of_steps[static_cast<std::size_t>(step - from)] = step_size(settings_, step);
    steps_.fill(sizes_of_steps.data(), sizeof sizes_of_steps);
    const auto at = [&](std::size_t name) { return reinterpret_cast<double*>(arrays_[name].card.address()); };
    const auto whole = [&](std::size_t first) -> device::WholeArrays {
      return {at(first), at(first + 1), at(first + 2), at(first + 3), at(first + 4), at(first + 5)};
    };
    device::LaneArrays arrays{at(kX), at(kGamma), at(kGram),     at(kVisible),  at(kReach), at(kAdded),
                              at(kF), at(kC),     at(kG),        at(kTop),      at(kRest),  at(kScratch),
                              at(kM), at(kZ),     whole(kTheta), whole(kThetaQ)};
    device::AnySizes sizes = layout_.sizes;
    const device::StepSize* steps = reinterpret_cast<const device::StepSize*>(steps_.address());
    long long runs = runs_;
    int count = static_cast<int>(to - from);
    auto number = static_cast<double>(from);
    std::array<void*, 8> arguments{&arrays, &runs, &rule_, &steps, &count, &number, &sizes, &entries_};
    const Index per_block = layout_.per_tile * layout_.tiles_per_block;
    cuda_.launch(layout_.kernel, static_cast<unsigned>((runs_ + per_block - 1) / per_block),
                 static_cast<unsigned>(layout_.lanes * layout_.tiles_per_block), arguments.data());
    cuda_.wait();
  }

  /// Copies what records need to the host.
  void fetch() {
    for (const ArrayName name : {kAdded, kF, kC, kG, kTop, kRest, kTheta, kThetaQ}) {
      DeviceArray& array = arrays_[name];
      if (!array.host.empty()) array.card.read(array.host.data(), array.host.size() * sizeof(double));
    }
  }

  /// Writes the fetched point of a run, and its gradient, into a group of one lane.
  void get(Index run, LaneGroup& to) {
    for (const auto& [name, numbers] :
         {std::pair{kAdded, to.added}, {kF, to.f}, {kC, to.c}, {kG, to.g}, {kTheta, to.K}, {kThetaQ, to.Q}}) {
      copy(run, name, [all = numbers](const double& there, Index k) { all[k] = there; });
    }
    *to.top = arrays_[kTop].host[place(run, 0, kTop, 0)];
  }

  Index rest(Index run) const { return static_cast<Index>(arrays_[kRest].host[place(run, 0, kRest, 0)]); }

 private:
  std::size_t place(Index run, Index query, std::size_t name, Index k) const {
    const Index tile = run / layout_.per_tile, slot = run % layout_.per_tile;
    const Index row = tile * layout_.numbers[name] + k;
    return static_cast<std::size_t>(per_run(name) ? row * layout_.per_tile + slot
                                                  : row * layout_.lanes + slot * shape_.n + query);
  }

  /// Calls use(number, k) for the numbers of a run, which LaneGroup has as number k.
  template <class Use>
  void copy(Index run, std::size_t name, const Use& use) {
    const Index size = layout_.numbers[name];
    for (Index i = 0; i < (per_run(name) ? 1 : shape_.n); ++i) {
      for (Index k = 0; k < size; ++k) use(arrays_[name].host[place(run, i, name, k)], i * size + k);
    }
  }

  Cuda& cuda_;
  LaneShape shape_;
  Layout layout_;
  Index runs_;
  device::LaneRule rule_;
  device::EntryRule entries_;
  std::array<DeviceArray, kArrays> arrays_;
  const TrainSettings& settings_;
  Cuda::Room steps_;
};

/// Trains runs that are on the card together.
void train_together(Cuda& cuda, std::span<const DeviceEntrant> entrants, Threads& threads) {
  const TrainSettings& settings = entrants[0].settings;
  const LaneShape& shape = entrants[0].input.shape;
  const auto count = static_cast<Index>(entrants.size());
  DeviceRuns runs(cuda, shape, settings, count);
  const auto with_lane = [&](Index k, const auto& use) {
    const DeviceEntrant& entrant = entrants[static_cast<std::size_t>(k)];
    LaneRuns lane(shape, 1, settings);
    lane.put(0, entrant.task, entrant.input, entrant.start);
    use(entrant, lane);
  };
  threads.for_each(
      count, [&](Index k) { with_lane(k, [&](const DeviceEntrant&, LaneRuns& lane) { runs.put(k, lane.group()); }); });
  runs.upload();
  std::vector<std::vector<Record>> records(entrants.size());
  std::vector<TrainedRun> ends(entrants.size());
  bool asked = false;
  for (Index from = 0, step = 0;;) {
    runs.advance(from, step);
    const bool last = step == settings.steps, due = settings.record.due(step, settings.steps);
    asked = !last && settings.progress && settings.progress(TrainProgress(step));
    const bool ends_here = last || asked;
    if (due || ends_here) {
      runs.fetch();
      threads.for_each(count, [&](Index k) {
        with_lane(k, [&](const DeviceEntrant& entrant, LaneRuns& lane) {
          runs.get(k, lane.group());
          Parameters point = entrant.start;
          Record here = lane.record(0, step, point);
          TrainedRun& end = ends[static_cast<std::size_t>(k)];
          if (due) end.records.push_back(here);
          if (!ends_here) return;
          const Index rest = runs.rest(k);
          end.stop = rest >= 0 ? TrainStop::zero_gradient : TrainStop::finished;
          end.steps = rest >= 0 ? rest : step;
          if (asked && (rest < 0 || settings.record.next(step + 1, settings.steps) >= 0)) end.stop = TrainStop::asked;
          end.W = std::move(here.W);
          if (settings.param == Parametrization::KQ) {
            end.K = point.K();
            end.Q = point.Q();
          }
          end.head = entrant.head;
          end.loss = here.loss;
          end.log_loss = here.log_loss;
          end.norm = here.norm;
          end.log_gradient = here.log_gradient;
        });
      });
    }
    if (ends_here) break;
    const Index next = settings.record.next(step + 1, settings.steps);
    from = step;
    step = std::min({next < 0 ? settings.steps : next, settings.steps, step + kMostSteps});
  }
  for (std::size_t k = 0; k < entrants.size(); ++k) entrants[k].out = std::move(ends[k]);
}

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

device::StepSize step_size(const TrainSettings& settings, Index step) {
  const auto [b1, b2] = rule_of(settings).betas;
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

std::size_t train_on_device(Cuda& cuda, std::span<const DeviceEntrant> entrants, Threads& threads) {
  std::size_t done = 0;
  try {
    while (done < entrants.size()) {
      const Index most =
          std::min(kMostAtOnce, DeviceRuns::fitting(cuda, entrants[done].input.shape, entrants[done].settings));
      const std::size_t count = std::min(entrants.size() - done, static_cast<std::size_t>(most));
      train_together(cuda, entrants.subspan(done, count), threads);
      done += count;
    }
  } catch (const DeviceError&) {
    return done;
  }
  return done;
}

}  // namespace attsvm::internal
