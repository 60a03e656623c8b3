#include "study/instances.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "attsvm/margin.h"

namespace attsvm::internal {

std::vector<AttentionTask> draw_tasks(const Recipe& recipe, std::uint64_t seed, std::uint32_t first,
                                      std::uint32_t count, Threads& threads) {
  std::vector<std::optional<AttentionTask>> drawn(count);
  threads.for_each(count, [&](std::int64_t k) {
    drawn[static_cast<std::size_t>(k)] = generate(recipe, seed, first + static_cast<std::uint32_t>(k)).task;
  });
  std::vector<AttentionTask> tasks;
  tasks.reserve(count);
  for (auto& task : drawn) tasks.push_back(std::move(*task));
  return tasks;
}

VerifiedSolutions solve_verified(std::span<const MarginProblem> problems, const SolveSettings& settings,
                                 Threads& threads) {
  VerifiedSolutions all;
  all.valid.resize(problems.size());
  all.solutions = solve_many(problems, settings, threads);
  threads.for_each(static_cast<std::int64_t>(problems.size()), [&](std::int64_t k) {
    const auto i = static_cast<std::size_t>(k);
    const StoredSolution claim = stored(problems[i], all.solutions[i], settings.tolerance);
    all.valid[i] = verify(problems[i].task(), claim, {.tolerance = settings.tolerance}).valid ? 1 : 0;
  });
  return all;
}

double Sample::error() const { return sd / std::sqrt(static_cast<double>(count)); }

Sample sample_of(const std::vector<double>& numbers) {
  Sample sample;
  double sum = 0;
  for (const double x : numbers) {
    if (std::isnan(x)) continue;
    sum += x;
    ++sample.count;
  }
  const auto count = static_cast<double>(sample.count);
  sample.mean = sum / count;  // NaN for none
  double squares = 0;
  for (const double x : numbers) {
    if (!std::isnan(x)) squares += (x - sample.mean) * (x - sample.mean);
  }
  sample.sd = sample.count > 1 ? std::sqrt(squares / (count - 1)) : std::numeric_limits<double>::quiet_NaN();
  return sample;
}

std::vector<double> numbers_of(const std::vector<const Json*>& results, const std::string& name) {
  std::vector<double> numbers;
  for (const Json* result : results) {
    const auto found = result->find(name);
    const bool number = found != result->end() && (found->is_number() || found->is_boolean());
    numbers.push_back(!number               ? std::numeric_limits<double>::quiet_NaN()
                      : found->is_boolean() ? static_cast<double>(found->get<bool>())
                                            : found->get<double>());
  }
  return numbers;
}

std::string words_of(const Sample& sample) {
  if (sample.count == 0) return "no runs";
  if (sample.count == 1) return fmt::format("{:.4g} (one run)", sample.mean);
  return fmt::format("{:.4g} ± {:.2g} (standard error {:.2g}, {} runs)", sample.mean, sample.sd, sample.error(),
                     sample.count);
}

}  // namespace attsvm::internal
