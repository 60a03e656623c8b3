// Small problems: the time of one solve, and of many at once, every answer verified.
// bench_small [FILE.npz ...]: without files random draws of the published sizes; with files one solve each, as JSON.

#include <fmt/format.h>

#include <cmath>

#include "attsvm/attsvm.h"
#include "measure.h"

namespace {

using namespace attsvm;

struct Batch {
  std::vector<AttentionTask> tasks;
  std::vector<MarginProblem> problems;

  Batch(const Recipe& recipe, std::uint32_t count) {
    for (std::uint32_t k = 0; k < count; ++k) tasks.push_back(generate(recipe, 1, k).task);
    for (const AttentionTask& task : tasks)
      problems.push_back(MarginProblem::attention(task, optimal_tokens(task).selection));
  }
};

/// Median over rounds of the mean time of a solve within a round.
double solve_one_by_one(const std::vector<MarginProblem>& problems, int rounds) {
  Threads alone(1);
  MarginSolver solver(alone);
  std::vector<MarginSolution> solutions(problems.size());
  std::vector<bench::Contender> contender{{"", [&] {
                                             for (std::size_t k = 0; k < problems.size(); ++k)
                                               solver.solve(problems[k], {}, solutions[k]);
                                           }}};
  bench::interleave(contender, rounds);
  return contender[0].median() / static_cast<double>(problems.size());
}

void print_sizes() {
  fmt::print("\n{:<14}{:>8}{:>14}{:>18}{:>12}{:>12}{:>12}{:>10}\n", "(n,T,d)", "rows", "one solve", "solve_many, 2",
             "worst gap", "infeasible", "not proven", "verified");
  for (const auto& [n, T, d] : {std::array<Index, 3>{6, 8, 10}, {15, 5, 20}, {5, 15, 20}, {10, 5, 4}, {30, 16, 32}}) {
    const Batch batch({.n = n, .T = T, .d = d}, n < 30 ? 2000 : 50);
    const double one = solve_one_by_one(batch.problems, 5);
    Threads two(2);
    std::vector<MarginSolution> solutions;
    std::vector<bench::Contender> many{{"", [&] { solve_many(batch.problems, {}, two, solutions); }}};
    bench::interleave(many, 5);
    double worst = 0;
    int infeasible = 0, open = 0, verified = 0;
    for (std::size_t k = 0; k < solutions.size(); ++k) {
      if (solutions[k].status == MarginStatus::infeasible) ++infeasible;
      if (solutions[k].status == MarginStatus::limit) ++open;
      if (solutions[k].status == MarginStatus::optimal) worst = std::max(worst, solutions[k].gap);
      if (verify(batch.tasks[k], stored(batch.problems[k], solutions[k], 1e-8)).valid) ++verified;
    }
    fmt::print("{:<14}{:>8}{:>11.1f} us{:>15.1f} us{:>12.1e}{:>12}{:>12}{:>5}/{}\n", fmt::format("({},{},{})", n, T, d),
               batch.problems[0].rows(), 1e6 * one, 1e6 * many[0].median() / static_cast<double>(solutions.size()),
               worst, infeasible, open, verified, solutions.size());
  }
}

/// Many random problems of assorted shapes, every answer verified. Returns how many were wrong or left open.
int census(std::uint32_t count) {
  constexpr std::uint32_t kBatch = 5000;
  Threads two(2);
  int optimal = 0, infeasible = 0, wrong = 0;
  for (std::uint32_t begin = 0; begin < count; begin += kBatch) {
    std::vector<AttentionTask> tasks;
    std::vector<MarginProblem> problems;
    std::vector<MarginSolution> solutions;
    for (std::uint32_t k = begin; k < begin + kBatch; ++k) {
      const Random shape(7, k, 1000);
      const auto draw = [&](std::uint64_t position, std::uint64_t most) {
        return static_cast<Index>(1 + shape.below(most, position));
      };
      const bool prompt = shape.below(4, 3) == 0;
      tasks.push_back(generate({.n = draw(0, 8),
                                .T = 1 + draw(1, 8),
                                .d = draw(2, 10),
                                .pattern = prompt ? QueryPattern::prompt : QueryPattern::cross},
                               7, k)
                          .task);
    }
    for (const AttentionTask& task : tasks)
      problems.push_back(MarginProblem::attention(task, optimal_tokens(task).selection));
    solve_many(problems, {}, two, solutions);
    for (std::size_t k = 0; k < solutions.size(); ++k) {
      const bool proven =
          solutions[k].status != MarginStatus::limit && verify(tasks[k], stored(problems[k], solutions[k], 1e-8)).valid;
      (!proven ? wrong : solutions[k].status == MarginStatus::optimal ? optimal : infeasible) += 1;
    }
  }
  fmt::print("{} assorted problems: {} optimal, {} infeasible, all verified but {}\n", count, optimal, infeasible,
             wrong);
  return wrong;
}

void print_files(int count, char** paths) {
  Threads alone(1);
  for (int k = 0; k < count; ++k) {
    const AttentionTask task = load_task(paths[k], alone);
    const Selection selection = task.select() ? *task.select() : optimal_tokens(task).selection;
    std::vector<MarginProblem> problem;
    problem.push_back(MarginProblem::attention(task, selection));
    const MarginSolution solution = solve(problem[0], {}, alone);
    fmt::print("{{\"seconds\": {}, \"gap\": {}, \"objective\": {}}}\n", solve_one_by_one(problem, 51), solution.gap,
               solution.objective);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    print_files(argc - 1, argv + 1);
    return 0;
  }
  print_sizes();
  return census(100'000) == 0 ? 0 : 1;
}
