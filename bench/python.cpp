// What the Python package is measured against: the same calls from C++. Prints seconds as JSON, each the least over
// rounds; bench/python_overhead.py runs it in turn with its own loops.

#include <fmt/format.h>

#include "attsvm/attsvm.h"
#include "measure.h"

namespace {

using namespace attsvm;

std::vector<AttentionTask> draw(std::uint32_t count) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < count; ++k) tasks.push_back(generate({.n = 6, .T = 8, .d = 10}, 1, k).task);
  return tasks;
}

template <class Work>
double least(int rounds, Work&& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

MarginProblem problem_of(const AttentionTask& task) {
  return MarginProblem::attention(task, optimal_tokens(task).selection);
}

}  // namespace

int main() {
  Threads threads;
  const auto few = draw(200), many = draw(5000);
  MarginSolver solver(threads);
  const double one = least(20, [&] {
    for (const AttentionTask& task : few) {
      MarginSolution solution;
      solver.solve(problem_of(task), {}, solution);
    }
  });
  const double all = least(5, [&] {
    std::vector<MarginProblem> problems;
    problems.reserve(many.size());
    for (const AttentionTask& task : many) problems.push_back(problem_of(task));
    std::vector<MarginSolution> solutions;
    solve_many(problems, {}, threads, solutions);
  });
  const double trained = least(5, [&] { train_many(few, {.steps = 500}, threads); });
  fmt::print("{{\"solve\": {}, \"solve_many\": {}, \"train_many\": {}}}\n", one / static_cast<double>(few.size()), all,
             trained);
}
