#include "theory/instances.h"

#include <optional>
#include <stdexcept>

namespace attsvm::internal {
namespace {

Verification verification_of(const MarginProblem& problem, const MarginSolution& solution) {
  return verify(problem.task(), stored(problem, solution, SolveSettings{}.tolerance));
}

}  // namespace

void for_each_alone(Index count, Threads& threads, const std::function<void(std::size_t, Threads&)>& work) {
  threads.for_each(count, [&](Index k) {
    Threads alone(1);
    work(static_cast<std::size_t>(k), alone);
  });
}

AttentionTask draw_task(const Recipe& recipe, std::uint64_t seed, Index instance) {
  return generate(recipe, seed, static_cast<std::uint32_t>(instance)).task;
}

std::vector<AttentionTask> draw_tasks(const Recipe& recipe, const Draws& draws, Threads& threads) {
  std::vector<std::optional<AttentionTask>> drawn(static_cast<std::size_t>(draws.count));
  threads.for_each(draws.count, [&](Index k) {
    drawn[static_cast<std::size_t>(k)] = draw_task(recipe, draws.seed, draws.first + k);
  });
  std::vector<AttentionTask> tasks;
  tasks.reserve(drawn.size());
  for (auto& task : drawn) tasks.push_back(std::move(*task));
  return tasks;
}

AttentionTask with_scores(const AttentionTask& drawn, std::vector<double> scores) {
  TaskArrays arrays = drawn.arrays();
  arrays.keys = arrays.tokens;
  arrays.tokens = Array::own(std::move(scores), {arrays.keys.shape[0], arrays.keys.shape[1], 1});
  arrays.labels = {};
  arrays.head = Array::own(std::vector<double>{1}, {1});
  return AttentionTask(std::move(arrays));
}

bool is_verified(const MarginProblem& problem, const MarginSolution& solution) {
  return is_settled(solution.status) && verification_of(problem, solution).valid;
}

void require_verified(const MarginProblem& problem, const MarginSolution& solution) {
  const Verification judged = verification_of(problem, solution);
  if (!judged.valid) throw std::logic_error("a solution does not pass verify: " + judged.reason);
}

std::vector<MarginSolution> solve_verified(std::span<const MarginProblem> problems, const Norm& norm,
                                           Threads& threads) {
  std::vector<MarginSolution> solutions = solve_many(problems, {.norm = norm}, threads);
  threads.for_each(std::ssize(problems), [&](Index k) {
    const auto at = static_cast<std::size_t>(k);
    require_verified(problems[at], solutions[at]);
  });
  return solutions;
}

MarginSolution VerifyingSolver::solve(const MarginProblem& problem, const Norm& norm) {
  const MarginSolution& solution = solver_.solve(problem, {.norm = norm});
  verified_ = verified_ && is_verified(problem, solution);
  return solution;
}

}  // namespace attsvm::internal
