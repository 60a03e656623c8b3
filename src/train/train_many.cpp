#include <algorithm>
#include <array>
#include <future>
#include <map>

#include "attsvm/train.h"
#include "base/blas.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "train/device_runs.h"
#include "train/lane_runs.h"
#include "train/settings.h"
#include "train/update.h"

namespace attsvm {

using namespace internal;

namespace {

/// A run that is to be put into a lane, or to run alone if `input` is empty.
struct Entrant {
  Head head{};
  Parameters point{};
  std::optional<LaneInput> input{};
};

/// Trains runs that share vectors. Lanes that are left over repeat the last run.
void run_together(std::span<const AttentionTask> tasks, std::vector<Entrant>& entrants,
                  std::span<const std::size_t> runs, const TrainSettings& settings, std::vector<TrainedRun>& out) {
  const Index lanes = lane_width(), used = static_cast<Index>(runs.size());
  LaneRuns group(entrants[runs[0]].input->shape, lanes, settings);
  for (Index lane = 0; lane < lanes; ++lane) {
    const std::size_t run = runs[static_cast<std::size_t>(std::min(lane, used - 1))];
    group.put(lane, tasks[run], *entrants[run].input, entrants[run].point);
  }
  group.evaluate();
  Index step = 0;
  bool asked = false;
  for (;; ++step) {
    const bool last = step == settings.steps, due = settings.record.due(step, settings.steps);
    for (Index lane = 0; lane < used; ++lane) {
      const std::size_t at = runs[static_cast<std::size_t>(lane)];
      TrainedRun& run = out[at];
      if (due) run.records.push_back(group.record(lane, step, entrants[at].point));
      // A run with zero gradient does not move, so it can stay in its lane.
      if (!last && run.stop == TrainStop::finished && group.rests(lane)) {
        run.stop = TrainStop::zero_gradient;
        run.steps = step;
      }
    }
    asked = !last && settings.progress && settings.progress(TrainProgress(step));
    if (last || asked) break;
    group.advance(scheduled_step(settings, step), step);
    group.evaluate();
  }
  for (Index lane = 0; lane < used; ++lane) {
    const std::size_t at = runs[static_cast<std::size_t>(lane)];
    TrainedRun& run = out[at];
    Parameters& point = entrants[at].point;
    Record here = group.record(lane, step, point);
    if (run.stop == TrainStop::finished) run.steps = step;
    if (asked && (run.stop == TrainStop::finished || settings.record.next(step + 1, settings.steps) >= 0))
      run.stop = TrainStop::asked;  // also runs at rest whose records are not all there
    run.W = std::move(here.W);
    if (settings.param == Parametrization::KQ) {
      run.K = point.K();
      run.Q = point.Q();
    }
    run.head = entrants[at].head;
    run.loss = here.loss;
    run.log_loss = here.log_loss;
    run.norm = here.norm;
    run.log_gradient = here.log_gradient;
  }
}

using ShapeKey = std::array<Index, 5>;

ShapeKey key_of(const LaneShape& shape) { return {shape.n, shape.T, shape.d, shape.dz, shape.r}; }

/// Trains on the GPU what it can take and what is worth it; the runs that it did are marked in the result. Calls
/// `meanwhile` before the GPU begins, if it does.
std::vector<bool> train_on_device_if_any(std::span<const AttentionTask> tasks, const TrainSettings& settings,
                                         Threads& threads, const std::vector<Entrant>& entrants,
                                         std::vector<TrainedRun>& out, const std::function<void()>& meanwhile) {
  std::vector<bool> done(tasks.size(), false);
  std::map<ShapeKey, std::vector<std::size_t>> shapes;
  bool tried = false;
  for (std::size_t run = 0; run < tasks.size(); ++run) {
    if (entrants[run].input) shapes[key_of(entrants[run].input->shape)].push_back(run);
  }
  for (const auto& [key, runs] : shapes) {
    const LaneShape& shape = entrants[runs[0]].input->shape;
    if (threads.device() == Device::automatic && !worth_a_device(shape, settings, runs.size())) continue;
    Cuda* cuda = device_for(settings, threads);
    if (cuda == nullptr) break;
    if (!tried) meanwhile();
    tried = true;
    std::vector<DeviceEntrant> chosen;
    chosen.reserve(runs.size());
    for (const std::size_t run : runs) {
      const Entrant& entrant = entrants[run];
      chosen.push_back({tasks[run], entrant.head, *entrant.input, entrant.point, out[run]});
    }
    train_on_device(*cuda, settings, chosen, threads);
    for (std::size_t k = 0; k < chosen.size(); ++k) done[runs[k]] = chosen[k].done;
  }
  const auto on_gpu = static_cast<std::size_t>(std::count(done.begin(), done.end(), true));
  if (tried) count_batch(on_gpu, done.size() - on_gpu);
  return done;
}

}  // namespace

std::vector<TrainedRun> train_many(std::span<const AttentionTask> tasks, const TrainSettings& settings,
                                   Threads& threads, std::span<const Start> starts) {
  if (!starts.empty() && starts.size() != tasks.size()) {
    refuse("starts has {} entries; must be none or one per task, {}", starts.size(), tasks.size());
  }
  const auto start_of = [&](std::size_t run) { return starts.empty() ? Start{} : starts[run]; };
  const TimeLimit limit(settings.time_limit);
  TrainSettings each = settings;
  each.time_limit = 0;  // the limit holds for all runs together
  if (settings.time_limit > 0) {
    each.progress = [&](const TrainProgress& now) {
      return limit.over() || (settings.progress && settings.progress(now));
    };
  }
  const auto settings_of = [&](std::size_t run) {
    TrainSettings own = each;
    own.instance += static_cast<std::uint32_t>(run);
    return own;
  };
  std::vector<Entrant> entrants(tasks.size());
  threads.for_each(static_cast<Index>(tasks.size()), [&](Index k) {
    const auto run = static_cast<std::size_t>(k);
    Entrant& entrant = entrants[run];
    const TrainSettings own = settings_of(run);
    with_place(fmt::format("tasks[{}]", k), [&] {
      require_usable(own, tasks[run]);
      entrant.head = starting_head(tasks[run], own, start_of(run));
      entrant.point = starting_point(tasks[run], own, start_of(run), entrant.head);
      if (settings.stop_direction > 0) return;  // runs that may end early do not share vectors
      const Index most = threads.device() == Device::cpu ? kMostLaneNumbers : kMostDeviceNumbers;
      entrant.input = lane_input(tasks[run], own, entrant.head, entrant.point, most);
    });
  });

  std::vector<TrainedRun> runs(tasks.size());
  const SingleThreadBlas blas;     // one guard for all runs
  std::vector<std::size_t> alone;  // runs that no lanes can take
  for (std::size_t run = 0; run < tasks.size(); ++run) {
    if (!entrants[run].input) alone.push_back(run);
  }
  const auto train_alone = [&](Index k) {
    const std::size_t run = alone[static_cast<std::size_t>(k)];
    Threads one(1);
    runs[run] = train(tasks[run], settings_of(run), one, start_of(run));
  };
  std::future<void> beside;  // on threads of their own while a GPU trains the others
  const std::vector<bool> done = train_on_device_if_any(tasks, each, threads, entrants, runs, [&] {
    if (alone.empty()) return;
    beside = std::async(std::launch::async, [&] {
      Threads(threads.count()).for_each(std::ssize(alone), train_alone);
      alone.clear();
    });
  });
  if (beside.valid()) beside.get();
  // A part is a vector of runs of one shape.
  std::vector<std::vector<std::size_t>> parts;
  std::map<ShapeKey, std::size_t> open;
  for (std::size_t run = 0; run < tasks.size(); ++run) {
    if (done[run] || !entrants[run].input) continue;
    const LaneShape& shape = entrants[run].input->shape;
    if (!shape.in_cpu_lanes()) {
      alone.push_back(run);
      continue;
    }
    const auto [at, added] = open.try_emplace(key_of(shape), parts.size());
    if (!added && static_cast<Index>(parts[at->second].size()) == lane_width()) at->second = parts.size();
    if (at->second == parts.size()) parts.emplace_back();
    parts[at->second].push_back(run);
  }
  // Both kinds in one loop, so that no thread waits between them.
  const Index groups = std::ssize(parts);
  threads.for_each(groups + std::ssize(alone), [&](Index k) {
    if (k < groups) return run_together(tasks, entrants, parts[static_cast<std::size_t>(k)], each, runs);
    train_alone(k - groups);
  });
  constexpr std::size_t kFreed = 1024;  // by a thread at a time
  threads.for_each(static_cast<Index>((entrants.size() + kFreed - 1) / kFreed), [&](Index k) {
    const std::size_t first = static_cast<std::size_t>(k) * kFreed;
    for (std::size_t run = first; run < std::min(entrants.size(), first + kFreed); ++run) entrants[run] = {};
  });
  return runs;
}

}  // namespace attsvm
