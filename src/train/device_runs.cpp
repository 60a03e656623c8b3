#include "train/device_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/simd.h"
#include "device/query_lane.h"
#include "train/update.h"

namespace attsvm::internal {
namespace {

constexpr Index kMostAtOnce = 1 << 17;  // runs whose numbers are on the card at a time
constexpr Index kMostSteps = 256;       // per launch, so that a stop is answered soon
constexpr double kWorthwhile = 4e9;     // multiplications that take a core about a second
constexpr double kShare = 0.8;          // of the card's free memory, at most
constexpr std::size_t kArrays = 12;     // of LaneArrays

/// How many numbers each array of LaneArrays has per query.
std::array<Index, kArrays> sizes_of(const LaneShape& shape) {
  const Index T = shape.T, d = shape.d;
  return {T * d, T, shape.n, 1, d, d, 1, 1, d, 1, 1, T + d};
}

/// How a shape is laid out on the card.
struct Layout {
  std::string kernel = "run_any";
  Index lanes = 64, tiles_per_block = 1;

  Layout(Cuda& cuda, const LaneShape& shape) {
    const std::string fixed = fmt::format("run_{}_{}_{}", shape.n, shape.T, shape.d);
    if (!cuda.has(fixed)) return;
    kernel = fixed;
    lanes = 32;
    tiles_per_block = 4;
  }
};

/// One array of LaneArrays: on the host, and on the card.
struct DeviceArray {
  Index size = 0;  // numbers per query
  std::vector<double> host{};
  Cuda::Room card{};
};

/// Runs of one shape on the card.
class DeviceRuns {
 public:
  DeviceRuns(Cuda& cuda, const LaneShape& shape, const TrainSettings& settings, Index runs)
      : cuda_(cuda),
        shape_(shape),
        layout_(cuda, shape),
        runs_(runs),
        per_tile_(layout_.lanes / shape.n),
        settings_(settings),
        step_sizes_(cuda, kMostSteps * sizeof(double)) {
    const StepRule rule = rule_of(settings);
    rule_ = {.loss = settings.loss == Loss::logistic      ? device::kLogistic
                     : settings.loss == Loss::exponential ? device::kExponential
                                                          : device::kLinear,
             .normalized = rule.kind == StepKind::steepest,
             .epsilon = rule.epsilon,
             .queries = static_cast<double>(shape.n)};
    const std::array<Index, kArrays> sizes = sizes_of(shape);
    const auto tiles = static_cast<std::size_t>((runs + per_tile_ - 1) / per_tile_);
    for (std::size_t k = 0; k < kArrays; ++k) {
      DeviceArray& array = arrays_[k];
      array.size = sizes[k];
      const std::size_t count = static_cast<std::size_t>(sizes[k] * layout_.lanes) * tiles;
      array.card = Cuda::Room(cuda, count * sizeof(double));
      if (k != kScratch) array.host.assign(count, k == kRest ? -1.0 : 0.0);
    }
  }

  /// How many runs of a shape fit into the card's memory at once; DeviceError if it is none.
  static Index fitting(Cuda& cuda, const LaneShape& shape) {
    const Layout layout(cuda, shape);
    Index numbers = 0;
    for (const Index size : sizes_of(shape)) numbers += size;
    const double tile = static_cast<double>(numbers * layout.lanes) * sizeof(double);
    const double tiles = std::floor(kShare * static_cast<double>(cuda.free_memory()) / tile);
    if (tiles < 1) throw DeviceError("the GPU has too little free memory");
    return static_cast<Index>(std::min(tiles, 1e9)) * (layout.lanes / shape.n);
  }

  /// Copies a run at its start from a group of one lane. Runs may be put by several threads at once.
  void put(Index run, const LaneGroup& from) {
    const Index T = shape_.T, d = shape_.d, n = shape_.n;
    copy(run, kX, T * d, from.X);
    copy(run, kGamma, T, from.gamma);
    copy(run, kGram, n, from.gram);
    copy(run, kVisible, 1, from.visible);
    copy(run, kReach, d, from.reach);
  }

  void upload() {
    for (DeviceArray& array : arrays_) {
      if (!array.host.empty()) array.card.fill(array.host.data(), array.host.size() * sizeof(double));
    }
  }

  /// Takes steps number from, …, to−1, at most kMostSteps, and finds the gradients after them. Returns when it is done.
  void advance(Index from, Index to) {
    std::array<double, kMostSteps> sizes_of_steps{};
    for (Index step = from; step < to; ++step)
      sizes_of_steps[static_cast<std::size_t>(step - from)] = scheduled_step(settings_, step);
    step_sizes_.fill(sizes_of_steps.data(), sizeof sizes_of_steps);
    const auto at = [&](ArrayName name) { return reinterpret_cast<double*>(arrays_[name].card.address()); };
    device::LaneArrays arrays{at(kX), at(kGamma), at(kGram), at(kVisible), at(kReach), at(kAdded),
                              at(kF), at(kC),     at(kG),    at(kTop),     at(kRest),  at(kScratch)};
    device::AnySizes sizes{static_cast<int>(shape_.n), static_cast<int>(shape_.T), static_cast<int>(shape_.d)};
    const double* steps = reinterpret_cast<const double*>(step_sizes_.address());
    long long runs = runs_;
    int count = static_cast<int>(to - from);
    auto number = static_cast<double>(from);
    std::array<void*, 7> arguments{&arrays, &runs, &rule_, &steps, &count, &number, &sizes};
    const Index per_block = per_tile_ * layout_.tiles_per_block;
    cuda_.launch(layout_.kernel, static_cast<unsigned>((runs_ + per_block - 1) / per_block),
                 static_cast<unsigned>(layout_.lanes * layout_.tiles_per_block), arguments.data());
    cuda_.wait();
  }

  /// Copies what records need to the host.
  void fetch() {
    for (const ArrayName name : {kAdded, kF, kC, kG, kTop, kRest}) {
      DeviceArray& array = arrays_[name];
      array.card.read(array.host.data(), array.host.size() * sizeof(double));
    }
  }

  /// Writes the fetched point of a run, and its gradient, into a group of one lane.
  void get(Index run, LaneGroup& to) const {
    read(run, kAdded, shape_.d, to.added);
    read(run, kF, 1, to.f);
    read(run, kC, 1, to.c);
    read(run, kG, shape_.d, to.g);
    *to.top = arrays_[kTop].host[place(run, 0, kTop, 0)];
  }

  Index rest(Index run) const { return static_cast<Index>(arrays_[kRest].host[place(run, 0, kRest, 0)]); }

 private:
  enum ArrayName : std::size_t { kX, kGamma, kGram, kVisible, kReach, kAdded, kF, kC, kG, kTop, kRest, kScratch };

  std::size_t place(Index run, Index query, ArrayName name, Index k) const {
    const Index tile = run / per_tile_, lane = run % per_tile_ * shape_.n + query;
    return static_cast<std::size_t>((tile * arrays_[name].size + k) * layout_.lanes + lane);
  }

  void copy(Index run, ArrayName name, Index size, const double* from) {
    for (Index i = 0; i < shape_.n; ++i) {
      for (Index k = 0; k < size; ++k) arrays_[name].host[place(run, i, name, k)] = from[i * size + k];
    }
  }

  void read(Index run, ArrayName name, Index size, double* to) const {
    for (Index i = 0; i < shape_.n; ++i) {
      for (Index k = 0; k < size; ++k) to[i * size + k] = arrays_[name].host[place(run, i, name, k)];
    }
  }

  Cuda& cuda_;
  LaneShape shape_;
  Layout layout_;
  Index runs_, per_tile_;
  device::LaneRule rule_{};
  std::array<DeviceArray, kArrays> arrays_;
  const TrainSettings& settings_;
  Cuda::Room step_sizes_;
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

Cuda* device_for(const TrainSettings& settings, const Threads& threads) {
  if (threads.device() == Device::cpu) return nullptr;
  const StepRule rule = rule_of(settings);
  const bool known = settings.param != Parametrization::KQ && !rule.averages() && rule.weight_decay == 0 &&
                     (rule.kind == StepKind::scaled || (rule.kind == StepKind::steepest && rule.norm.is_frobenius()));
  if (!known) return nullptr;
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
      const Index most = std::min(kMostAtOnce, DeviceRuns::fitting(cuda, entrants[done].input.shape));
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
