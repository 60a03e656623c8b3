#pragma once

#include <functional>
#include <span>
#include <vector>

#include "attsvm/generate.h"
#include "attsvm/margin.h"

namespace attsvm::internal {

// Drawing tasks and solving their SVMs, for claims and studies.

/// Calls work(k, alone) for k = 0 … count−1 on all threads; `alone` is a single-threaded Threads for the work itself.
void for_each_alone(Index count, Threads& threads, const std::function<void(std::size_t k, Threads& alone)>& work);

/// Instances first … first+count−1 of what a seed draws.
struct Draws {
  std::uint64_t seed = 0;
  Index first = 0, count = 1;

  std::uint32_t instance(std::size_t k) const { return static_cast<std::uint32_t>(first + static_cast<Index>(k)); }
};

AttentionTask draw_task(const Recipe& recipe, std::uint64_t seed, Index instance);
std::vector<AttentionTask> draw_tasks(const Recipe& recipe, const Draws& draws, Threads& threads);

/// The task with a value apart from its key for each token, a number, and the head that passes it on: (n,T) scores.
AttentionTask with_scores(const AttentionTask& drawn, std::vector<double> scores);

/// Whether the solver came to an answer and verify() confirms it.
bool is_verified(const MarginProblem& problem, const MarginSolution& solution);

/// std::logic_error unless verify() confirms the solution.
void require_verified(const MarginProblem& problem, const MarginSolution& solution);

/// The problems' solutions, each confirmed by verify(); std::logic_error otherwise.
std::vector<MarginSolution> solve_verified(std::span<const MarginProblem> problems, const Norm& norm, Threads& threads);

/// Solves problems one by one, and remembers whether verify() confirmed every answer.
class VerifyingSolver {
 public:
  explicit VerifyingSolver(Threads& threads) : solver_(threads) {}

  MarginSolution solve(const MarginProblem& problem, const Norm& norm = Norm::frobenius());
  bool verified() const { return verified_; }

 private:
  MarginSolver solver_;
  bool verified_ = true;
};

}  // namespace attsvm::internal
