// The nuclear norm on small problems, every answer verified, and the grid of ranks over (n,T,d).
// bench_nuclear [FILE.npz ...]: with files one solve each, as JSON.

#include <fmt/format.h>

#include <cmath>

#include "attsvm/attsvm.h"
#include "measure.h"

namespace {

using namespace attsvm;

const SolveSettings kNuclear{.norm = Norm::nuclear()};

struct Batch {
  std::vector<AttentionTask> tasks;
  std::vector<MarginProblem> problems;

  Batch(const Recipe& recipe, std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t k = begin; k < end; ++k) tasks.push_back(generate(recipe, 1, k).task);
    for (const AttentionTask& task : tasks)
      problems.push_back(MarginProblem::attention(task, optimal_tokens(task).selection));
  }
};

bool is_verified(const MarginProblem& problem, const MarginSolution& solution) {
  return verify(problem.task(), stored(problem, solution, 1e-8)).valid;
}

/// Median over rounds of the mean time of a solve within a round.
double solve_one_by_one(const std::vector<MarginProblem>& problems, const SolveSettings& settings, int rounds) {
  Threads alone(1);
  MarginSolver solver(alone);
  std::vector<MarginSolution> solutions(problems.size());
  std::vector<bench::Contender> contender{{"", [&] {
                                             for (std::size_t k = 0; k < problems.size(); ++k)
                                               solver.solve(problems[k], settings, solutions[k]);
                                           }}};
  bench::interleave(contender, rounds);
  return contender[0].median() / static_cast<double>(problems.size());
}

void print_sizes() {
  fmt::print("\n{:<14}{:>8}{:>14}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n", "(n,T,d)", "rows", "one solve",
             "Frobenius", "mean rank", "worst gap", "infeasible", "not proven", "uncertain", "verified");
  for (const auto& [n, T, d] : {std::array<Index, 3>{6, 8, 10}, {15, 5, 20}, {5, 15, 20}, {10, 5, 4}, {30, 16, 32}}) {
    const Batch batch({.n = n, .T = T, .d = d}, 0, n < 30 ? 500 : 10);
    const double one = solve_one_by_one(batch.problems, kNuclear, 3);
    const double frobenius = solve_one_by_one(batch.problems, {}, 3);
    Threads two(2);
    std::vector<MarginSolution> solutions;
    solve_many(batch.problems, kNuclear, two, solutions);
    double worst = 0, ranks = 0;
    int optimal = 0, infeasible = 0, open = 0, uncertain = 0, verified = 0;
    for (std::size_t k = 0; k < solutions.size(); ++k) {
      const MarginSolution& solution = solutions[k];
      if (solution.status == MarginStatus::infeasible) ++infeasible;
      if (solution.status == MarginStatus::limit) ++open;
      if (is_verified(batch.problems[k], solution)) ++verified;
      if (solution.status != MarginStatus::optimal) continue;
      ++optimal;
      ranks += static_cast<double>(solution.rank.rank);
      worst = std::max(worst, solution.gap);
      if (!solution.rank.certified) ++uncertain;
    }
    fmt::print("{:<14}{:>8}{:>11.1f} us{:>9.1f} us{:>12.2f}{:>12.1e}{:>12}{:>12}{:>12}{:>6}/{}\n",
               fmt::format("({},{},{})", n, T, d), batch.problems[0].rows(), 1e6 * one, 1e6 * frobenius,
               ranks / optimal, worst, infeasible, open, uncertain, verified, solutions.size());
  }
}

/// Ranks of both optima over draws, 100 feasible ones a cell (at most 2,000 draws), conflicts certified.
int print_grid() {
  constexpr int kWanted = 100;
  constexpr std::uint32_t kDraws = 2000;
  Threads two(2);
  int open = 0, uncertain = 0, solved = 0;
  const auto start = std::chrono::steady_clock::now();
  fmt::print("\nmean rank, Frobenius / nuclear (share of infeasible draws)\n{:<8}", "n, T");
  const std::array<Index, 8> sizes{1, 2, 3, 4, 5, 10, 15, 20};
  for (const Index d : sizes) fmt::print("{:>20}", fmt::format("d = {}", d));
  for (const auto& [n, T] : {std::array<Index, 2>{5, 5}, {10, 5}, {15, 5}, {5, 10}, {5, 15}}) {
    fmt::print("\n{:<8}", fmt::format("{}, {}", n, T));
    for (const Index d : sizes) {
      double ranks = 0, frobenius_ranks = 0;
      int feasible = 0, infeasible = 0;
      std::vector<MarginSolution> nuclear, frobenius;
      for (std::uint32_t begin = 0; begin < kDraws && feasible < kWanted;) {
        const std::uint32_t end = std::min(kDraws, begin + 100);
        const Batch batch({.n = n, .T = T, .d = d}, begin, end);
        solve_many(batch.problems, {}, two, frobenius);
        solve_many(batch.problems, kNuclear, two, nuclear);
        solved += 2 * static_cast<int>(batch.problems.size());
        for (std::size_t k = 0; k < nuclear.size() && feasible < kWanted; ++k) {
          if (nuclear[k].status == MarginStatus::limit || frobenius[k].status != nuclear[k].status) {
            ++open;
          } else if (nuclear[k].status == MarginStatus::infeasible) {
            ++infeasible;
          } else {
            ++feasible;
            ranks += static_cast<double>(nuclear[k].rank.rank);
            frobenius_ranks += static_cast<double>(numerical_rank(frobenius[k].W));
            if (!nuclear[k].rank.certified) ++uncertain;
          }
        }
        begin = end;
      }
      fmt::print("{:>20}", fmt::format("{:.2f}/{:.2f} ({:.0f} %)", frobenius_ranks / feasible, ranks / feasible,
                                       100.0 * infeasible / std::max(1, infeasible + feasible)));
      std::fflush(stdout);
    }
  }
  fmt::print("\n{} solves in {:.1f} s on two threads, {} not proven, {} ranks not certified\n", solved,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), open, uncertain);
  return open;
}

void print_files(int count, char** paths) {
  Threads alone(1);
  for (int k = 0; k < count; ++k) {
    const AttentionTask task = load_task(paths[k], alone);
    const Selection selection = task.select() ? *task.select() : optimal_tokens(task).selection;
    std::vector<MarginProblem> problem;
    problem.push_back(MarginProblem::attention(task, selection));
    const MarginSolution solution = solve(problem[0], kNuclear, alone);
    fmt::print("{{\"seconds\": {}, \"gap\": {}, \"objective\": {}, \"rank\": {}, \"certified\": {}}}\n",
               solve_one_by_one(problem, kNuclear, problem[0].rows() < 200 ? 51 : 5), solution.gap, solution.objective,
               solution.rank.rank, solution.rank.certified);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    print_files(argc - 1, argv + 1);
    return 0;
  }
  print_sizes();
  return print_grid() == 0 ? 0 : 1;
}
