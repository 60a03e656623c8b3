#include "theory/claim_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "attsvm/margin.h"
#include "attsvm/task.h"
#include "attsvm/theory.h"

namespace attsvm::internal {
namespace {

constexpr Index kBatch = 32;                        // most draws between two calls of progress
constexpr std::uint32_t kScoreStream = 0x5c0e0001;  // different from the streams of generate()

/// Thrown where a batch is given up.
struct BatchGivenUp {};

}  // namespace

Tally::Tally(const Claim& claim, const ClaimSettings& settings)
    : settings_(settings),
      limit_(settings.time_limit),
      wanted_(settings.tasks > 0 ? settings.tasks : claim.tasks),
      batch_(settings.batch > 0 ? settings.batch : std::min(kBatch, 2 * wanted_)) {
  result_.worst = -kUnmeasured;
  continues(result_.tasks, result_.held, result_.worst, worst_failure_);
}

void Tally::for_batches(Index limit, Index batch, const std::function<void(Index, Index)>& work) {
  if (limit == 0) limit = wanted_;
  for (const ClaimBatch& done : settings_.done) numbers_.put(done);
  numbers_.mark();
  for (Index first = std::ssize(settings_.done) * batch; first < limit && !full(); first += batch) {
    if (limit_.over() || is_stopped() || (settings_.progress && settings_.progress({result_.tasks, wanted_}))) {
      result_.complete = false;
      return;
    }
    failed_worse_ = false;
    const std::optional<CounterExample> before = result_.counterexample;
    try {
      work(first, std::min(batch, limit - first));
    } catch (const BatchGivenUp&) {
      numbers_.undo();
      result_.counterexample = before;
      result_.complete = false;
      return;
    }
    if (settings_.keep) settings_.keep(numbers_.take(), failed_worse_ ? &*result_.counterexample : nullptr);
  }
}

bool Tally::is_stopped() const { return settings_.stopped && settings_.stopped(); }

void Tally::for_each_alone(Index count, Threads& threads, const std::function<void(std::size_t, Threads&)>& work) {
  internal::for_each_alone(count, threads, [&](std::size_t k, Threads& alone) {
    if (is_stopped()) throw BatchGivenUp{};
    work(k, alone);
  });
}

void Tally::add(const AttentionTask& task, bool held, double measure, std::string words,
                std::map<std::string, Array> extras) {
  if (full()) return;
  if (std::isnan(measure)) measure = kUnmeasured;
  ++result_.tasks;
  result_.held += held ? 1 : 0;
  result_.worst = std::max(result_.worst, measure);
  const bool first_failure = result_.tasks - result_.held == 1;
  if (held || (!first_failure && measure <= worst_failure_)) return;
  worst_failure_ = measure;
  failed_worse_ = true;
  result_.counterexample.emplace(CounterExample{task, std::move(extras), std::move(words)});
}

void Tally::share(std::string label, Index part, Index whole) {
  if (whole > 0) figure(std::move(label), static_cast<double>(part) / static_cast<double>(whole));
}

ClaimResult Tally::result() && {
  if (result_.tasks == 0) result_.worst = std::numeric_limits<double>::quiet_NaN();
  return std::move(result_);
}

void Mean::add(double value) {
  sum_ += value;
  ++count_;
}

void Slopes::add(double cosine, const RowMatrix& W) {
  constexpr double kRounding = 1e-12;  // the sign of cosines below it may be rounding
  ++points;
  if (std::abs(cosine) < kRounding) {
    ++undecided;
    return;
  }
  const double measured = std::isnan(cosine) ? kUnmeasured : cosine;
  if (measured <= largest) return;
  largest = measured;
  where = W;
}

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<AttentionTask> draw_equal_scores(const Recipe& recipe, const Draws& draws) {
  std::vector<AttentionTask> tasks;
  for (Index k = draws.first; k < draws.first + draws.count; ++k) {
    const AttentionTask drawn = draw_task(recipe, draws.seed, k);
    const Random random(draws.seed, static_cast<std::uint32_t>(k), kScoreStream);
    const Index n = drawn.sequences(), T = drawn.longest();
    std::vector<double> scores;
    for (Index i = 0; i < n; ++i) {
      const auto at = static_cast<std::uint64_t>(3 * i);
      const auto best = static_cast<Index>(random.below(static_cast<std::uint64_t>(T), at));
      const double low = random.normal(at + 1), high = low + 0.1 + random.uniform(at + 2);
      for (Index t = 0; t < T; ++t) scores.push_back(t == best ? high : low);
    }
    tasks.push_back(with_scores(drawn, std::move(scores)));
  }
  return tasks;
}

RowMatrix random_matrix(const Random& random, Index rows, Index cols, double size) {
  RowMatrix matrix(rows, cols);
  random.normals({matrix.data(), static_cast<std::size_t>(matrix.size())});
  return matrix * (size / matrix.norm());
}

std::vector<MarginProblem> attention_problems(std::span<const AttentionTask> tasks,
                                              std::span<const std::vector<Index>> selected) {
  std::vector<MarginProblem> problems;
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    problems.push_back(MarginProblem::attention(tasks[k], Selection::single(selected[k])));
  }
  return problems;
}

std::vector<std::vector<Index>> optimal_of(std::span<const AttentionTask> tasks) {
  std::vector<std::vector<Index>> all;
  for (const AttentionTask& task : tasks) all.push_back(optimal_tokens(task).selection.firsts());
  return all;
}

std::vector<std::vector<Index>> selected_by(std::span<const AttentionTask> tasks, std::span<const TrainedRun> runs,
                                            Threads& threads) {
  std::vector<std::vector<Index>> all(tasks.size());
  for_each_alone(std::ssize(tasks), threads,
                 [&](std::size_t k, Threads& alone) { all[k] = attention_map(tasks[k], runs[k].W, alone).selected; });
  return all;
}

double distance(const RowMatrix& W, const MarginSolution& solution) {
  if (solution.status != MarginStatus::optimal) return kUnmeasured;
  const double gap = 1 - correlation(W, solution.W);
  return std::isnan(gap) ? kUnmeasured : gap;
}

}  // namespace attsvm::internal
