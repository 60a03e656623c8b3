#include "attsvm/capacity.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "attsvm/margin.h"
#include "attsvm/train.h"
#include "base/limits.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "base/wilson.h"
#include "theory/capacity_search.h"
#include "theory/claim_tools.h"
#include "theory/row_dimension.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr Index kMostNumbers = 100'000'000;  // of the tokens of one task, or of W
constexpr Index kMostHeads = 1000;           // each takes one more solve per draw
constexpr Index kBatchNumbers = 8'000'000;   // of a batch of tasks
constexpr Index kMostOfBatch = 32;           // draws between two looks at the clock
constexpr double kTrainingWork = 4e9;        // steps · tokens · d of all runs: a few seconds
constexpr Index kRunSteps = 2000;
constexpr double kRunCost = 3, kSearchCost = 0.15, kSearchSizes = 8;  // of a draw; for the estimate of what is left

class Spreading {
 public:
  void add(double value) { values_.push_back(value); }
  Spread spread() const {
    Spread spread{.count = std::ssize(values_), .mean = kNaN, .deviation = kNaN, .least = kNaN, .most = kNaN};
    if (values_.empty()) return spread;
    double sum = 0, squares = 0;
    for (const double value : values_) sum += value;
    spread.mean = sum / static_cast<double>(spread.count);
    for (const double value : values_) squares += (value - spread.mean) * (value - spread.mean);
    if (spread.count > 1) spread.deviation = std::sqrt(squares / static_cast<double>(spread.count - 1));
    spread.least = *std::min_element(values_.begin(), values_.end());
    spread.most = *std::max_element(values_.begin(), values_.end());
    return spread;
  }

 private:
  std::vector<double> values_;
};

void require_sizes(const CapacitySettings& s) {
  const auto least = [](const char* name, Index value, Index bound) {
    if (value < bound) refuse("{} = {}; must be at least {}", name, value, bound);
  };
  least("n", s.n, 1);
  least("T", s.T, 2);
  least("d", s.d, 1);
  least("dz", s.dz, 0);
  if (s.pattern == QueryPattern::causal) refuse("pattern = causal; must be cross, self or prompt");
  if (s.dz > 0 && s.pattern != QueryPattern::cross)
    refuse("dz = {}; {} attention has no queries of a size of their own", s.dz, name_of(s.pattern));
  const double numbers =
      static_cast<double>(s.n) * (static_cast<double>(s.T) * static_cast<double>(s.d) + static_cast<double>(s.dz));
  if (numbers > static_cast<double>(kMostNumbers))
    refuse("n = {}, T = {}, d = {}: a task would have {:.2g} numbers; must be at most {:.2g}", s.n, s.T, s.d, numbers,
           static_cast<double>(kMostNumbers));
  const Index dz = query_size_of({.d = s.d, .dz = s.dz, .pattern = s.pattern}), most = std::min(s.d, dz);
  const double unknowns = static_cast<double>(s.d) * static_cast<double>(dz);
  if (unknowns > static_cast<double>(kMostNumbers))
    refuse("d = {}, dz = {}: W would have {:.2g} entries; must be at most {:.2g}", s.d, dz, unknowns,
           static_cast<double>(kMostNumbers));
  least("width", s.width, 0);
  if (s.width > most) refuse("width = {}; must be at most min(d,dz) = {}", s.width, most);
  least("heads", s.heads, 1);
  if (s.heads > kMostHeads) refuse("heads = {}; must be at most {}", s.heads, kMostHeads);
  least("draws", s.draws, 1);
  least("runs", s.runs, -1);
  if (s.runs > s.draws) refuse("runs = {}; must be at most draws = {}", s.runs, s.draws);
  if (!(s.wanted >= 0 && s.wanted < 1)) refuse("wanted = {}; must be at least 0 and below 1", s.wanted);
  require_time_limit(s.time_limit);
}

/// A question that all threads may ask: only the thread that constructed it passes it on, and a yes stays.
class StopQuestion {
 public:
  explicit StopQuestion(std::function<bool()> ask) : ask_(std::move(ask)) {}
  bool operator()() {
    if (!stopped_ && std::this_thread::get_id() == owner_ && ask_()) stopped_ = true;
    return stopped_;
  }
  bool answered_yes() const { return stopped_; }

 private:
  std::function<bool()> ask_;
  std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> stopped_ = false;
};

/// One call of capacity().
class Estimate {
 public:
  Estimate(const CapacitySettings& settings, Threads& threads)
      : settings_(settings), threads_(threads), limit_(settings.time_limit) {}

  Capacity result() {
    const Index dz = query_size_of(recipe_);
    answer_.rows = settings_.n * (settings_.T - 1);
    answer_.unknowns = settings_.d * dz;
    const AlwaysSeparable always = always_separable(recipe_);
    answer_.always = always.holds;
    answer_.why = always.why;
    answer_.cover = static_cast<double>(answer_.rows) / (2 * static_cast<double>(answer_.unknowns));
    const std::vector<double> law = dimension_law(settings_.T, settings_.d, settings_.seed, threads_, std::ref(stop_));
    answer_.dimension = law.empty() ? kNaN : mean_dimension(law);
    answer_.load = static_cast<double>(settings_.n) * answer_.dimension / static_cast<double>(answer_.unknowns);
    answer_.predicted = always.holds ? 1 : law.empty() ? kNaN : separable_chance(law, settings_.n, answer_.unknowns);

    for_batches(recipe_, settings_.draws, "draws", 1, [&](const Draws& draws) { add_draws(draws); });
    for_batches(recipe_, runs_, "runs", kRunCost, [&](const Draws& draws) { add_runs(draws); });
    if (settings_.wanted > 0 && !stop_()) {
      answer_.smallest_d = smallest_size(
          recipe_, settings_.wanted, kMostNumbers / (settings_.n * settings_.T), settings_.seed,
          [&](const Recipe& recipe) { return separable_share(recipe); }, std::ref(stop_), threads_);
    }
    if (settings_.chances && !stop_()) {
      name_ = "predicted chances";
      answer_.chances = chances_around(recipe_, answer_.smallest_d, settings_.seed, std::ref(stop_), threads_);
    }
    answer_.complete = !stop_.answered_yes();
    answer_.margin = margin_.spread();
    answer_.rank = rank_.spread();
    answer_.rank_floor = floor_.spread();
    answer_.width_margin = width_margin_.spread();
    answer_.support = support_.spread();
    return std::move(answer_);
  }

 private:
  static Recipe recipe_of_settings(const CapacitySettings& s) {
    return {.n = s.n, .T = s.T, .d = s.d, .dz = s.dz, .pattern = s.pattern};
  }

  /// Calls work with consecutive draws, until `count` are done or the call is to stop. False if it is.
  bool for_batches(const Recipe& recipe, Index count, const char* name, double cost,
                   const std::function<void(const Draws&)>& work) {
    const Index batch = std::clamp(kBatchNumbers / (recipe.n * recipe.T * recipe.d), Index{1}, kMostOfBatch);
    name_ = name;
    for (Index first = 0; first < count && !stop_(); first += batch) {
      const Index here = std::min(batch, count - first);
      work({settings_.seed, first, here});
      done_ += cost * static_cast<double>(here);
    }
    return !stop_.answered_yes();
  }

  /// As solve_many, but stops in the middle of a solve too.
  std::vector<MarginSolution> solutions_of(const std::vector<MarginProblem>& problems, const Norm& norm = {}) {
    std::vector<MarginSolution> solutions(problems.size());
    const SolveSettings settings{.norm = norm, .progress = [&](const SolveProgress&) { return stop_(); }};
    std::atomic<std::size_t> next = 0;
    threads_.for_each(threads_.count(), [&](Index) {
      Threads alone(1);
      MarginSolver solver(alone);
      for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < problems.size() && !stop_();)
        solutions[k] = solver.solve(problems[k], settings);
    });
    return solutions;
  }

  std::vector<MarginProblem> problems_of(const std::vector<AttentionTask>& tasks, const Draws& draws, Index head) {
    std::vector<std::vector<Index>> selected;
    for (std::size_t k = 0; k < tasks.size(); ++k)
      selected.push_back(selection_of_head(tasks[k], draws.seed, draws.instance(k), head));
    return attention_problems(tasks, selected);
  }

  void add_draws(const Draws& draws) {
    const std::vector<AttentionTask> tasks = draw_selections(recipe_, draws, threads_);
    const std::vector<MarginProblem> problems = problems_of(tasks, draws, 0);
    const std::vector<MarginSolution> fro = solutions_of(problems);
    std::vector<MarginProblem> separable;
    std::vector<std::size_t> which;
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      if (fro[k].status != MarginStatus::optimal) continue;
      separable.push_back(problems[k]);
      which.push_back(k);
    }
    const std::vector<MarginSolution> nuc = solutions_of(separable, Norm::nuclear());
    if (stop_.answered_yes()) return;  // this batch does not count
    std::vector<bool> all(tasks.size()), open(tasks.size()), narrow(tasks.size());
    for (std::size_t k = 0; k < tasks.size(); ++k) all[k] = fro[k].status == MarginStatus::optimal;
    for (std::size_t k = 0; k < which.size(); ++k) {
      const MarginSolution& one = fro[which[k]];
      margin_.add(1 / one.objective);
      support_.add(static_cast<double>(one.support) / static_cast<double>(problems[which[k]].rows()));
      if (nuc[k].status != MarginStatus::optimal) continue;
      narrow[which[k]] = nuc[k].rank.rank <= settings_.width;
      rank_.add(static_cast<double>(nuc[k].rank.rank));
      // ‖W‖_* ≥ the bound on the nuclear norm, for every W that separates.
      const double floor = std::pow(nuc[k].dual_objective / one.objective, 2);
      floor_.add(floor);
      if (settings_.width > 0)
        width_margin_.add(std::min(1.0, std::sqrt(static_cast<double>(settings_.width) / floor)));
    }
    for (Index head = 1; head < settings_.heads; ++head) {
      const std::vector<MarginSolution> other = solutions_of(problems_of(tasks, draws, head));
      for (std::size_t k = 0; k < tasks.size(); ++k) {
        all[k] = all[k] && other[k].status != MarginStatus::infeasible;
        open[k] = open[k] || !is_settled(other[k].status);
      }
    }
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      if (!is_settled(fro[k].status)) {
        ++answer_.undecided;
        continue;
      }
      answer_.separable.add(fro[k].status == MarginStatus::optimal);
      if (settings_.heads > 1 && !(all[k] && open[k])) answer_.all_heads.add(all[k]);
      if (settings_.width > 0) answer_.fits_width.add(narrow[k]);
    }
  }

  void add_runs(const Draws& draws) {
    const std::vector<AttentionTask> tasks = draw_selections(recipe_, draws, threads_);
    const double left = settings_.time_limit > 0 ? std::max(1e-3, settings_.time_limit - limit_.seconds()) : 0;
    const std::vector<TrainedRun> runs = train_many(tasks, {.steps = kRunSteps, .time_limit = left}, threads_);
    const auto selected = selected_by(tasks, runs, threads_), best = optimal_of(tasks);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      if (runs[k].stop != TrainStop::asked) answer_.global.add(selected[k] == best[k]);
    }
  }

  std::optional<Share> separable_share(const Recipe& recipe) {
    Share share;
    const bool finished = for_batches(recipe, settings_.draws, "smallest d", kSearchCost, [&](const Draws& draws) {
      const std::vector<AttentionTask> tasks = draw_selections(recipe, draws, threads_);
      for (const MarginSolution& one : solutions_of(problems_of(tasks, draws, 0))) {
        if (is_settled(one.status)) share.add(one.status == MarginStatus::optimal);
      }
    });
    return finished ? std::optional(share) : std::nullopt;
  }

  const CapacitySettings& settings_;
  Threads& threads_;
  TimeLimit limit_;
  Recipe recipe_ = recipe_of_settings(settings_);
  Index runs_ = settings_.runs >= 0
                    ? settings_.runs
                    : std::min(settings_.draws,
                               static_cast<Index>(kTrainingWork / (static_cast<double>(kRunSteps) *
                                                                   static_cast<double>(settings_.n * settings_.T) *
                                                                   static_cast<double>(settings_.d))));
  double done_ = 0,
         all_ = static_cast<double>(settings_.draws) * (1 + (settings_.wanted > 0 ? kSearchCost * kSearchSizes : 0)) +
                kRunCost * static_cast<double>(runs_);
  const char* name_ = "projections";
  StopQuestion stop_{[this] {
    return limit_.over() || (settings_.progress && settings_.progress(name_, std::min(done_ / all_, 0.99)));
  }};
  Capacity answer_;
  Spreading margin_, rank_, floor_, width_margin_, support_;
};

}  // namespace

double Share::value() const { return static_cast<double>(count) / static_cast<double>(of); }

void Share::add(bool did) {
  count += did ? 1 : 0;
  ++of;
  const Interval interval = wilson(value(), static_cast<double>(of));
  low = interval.low;
  high = interval.high;
}

Capacity capacity(const CapacitySettings& settings, Threads& threads) {
  require_sizes(settings);
  return Estimate(settings, threads).result();
}

}  // namespace attsvm
