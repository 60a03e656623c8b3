// The calls of the Python package, made from C++ for comparison. bench/python_overhead.py alternates between this and
// its own loops.

#include "bench.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

std::vector<AttentionTask> draw(std::uint32_t count) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < count; ++k) tasks.push_back(generate({.n = 6, .T = 8, .d = 10}, 1, k).task);
  return tasks;
}

MarginProblem problem_of(const AttentionTask& task) {
  return MarginProblem::attention(task, optimal_tokens(task).selection);
}

void report(const char* name, std::function<void()> work, int rounds, double share) {
  std::vector<Contender> one{{name, std::move(work)}};
  interleave(one, rounds);
  emit({{"name", name}, {"seconds", divided(one[0].seconds, share)}});
}

void run_calls() {
  Threads threads;
  const auto few = draw(200), many = draw(5000);
  MarginSolver solver(threads);
  report(
      "solve",
      [&] {
        for (const AttentionTask& task : few) {
          const MarginSolution solution = solver.solve(problem_of(task), {});
        }
      },
      20, static_cast<double>(few.size()));
  report(
      "solve_many",
      [&] {
        std::vector<MarginProblem> problems;
        problems.reserve(many.size());
        for (const AttentionTask& task : many) problems.push_back(problem_of(task));
        solve_many(problems, {}, threads);
      },
      5, 1);
  report(
      "train_many", [&] { train_many(few, {.steps = 500}, threads); }, 5, 1);
}

}  // namespace

void add_calls(CLI::App& program) {
  program.add_subcommand("calls", "The calls of the Python package, from C++")->callback(run_calls);
}

}  // namespace attsvm::bench
