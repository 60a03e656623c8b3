// Many small problems: one by one, all at once, and a census of assorted shapes; every answer is verified.

#include <fmt/format.h>

#include <stdexcept>

#include "base/random.h"
#include "bench.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

struct Options {
  Size size;
  std::string norm = "fro";
  std::uint32_t count = 500;
  int threads = 2;
};

struct Verdicts {
  int optimal = 0, infeasible = 0, wrong = 0, uncertain_ranks = 0;
  double worst_gap = 0;

  void add(const MarginProblem& problem, const MarginSolution& solution) {
    const bool proven =
        solution.status != MarginStatus::limit && verify(problem.task(), stored(problem, solution, 1e-8)).valid;
    if (!proven) {
      ++wrong;
    } else if (solution.status == MarginStatus::infeasible) {
      ++infeasible;
    } else {
      ++optimal;
      worst_gap = std::max(worst_gap, solution.gap);
      if (solution.norm.is_nuclear() && !solution.rank.certified) ++uncertain_ranks;
    }
  }

  void add_to(Json& line) const {
    line.update({{"optimal", optimal},
                 {"infeasible", infeasible},
                 {"wrong", wrong},
                 {"uncertain_ranks", uncertain_ranks},
                 {"worst_gap", worst_gap}});
  }
};

std::vector<MarginProblem> problems_of(const std::vector<AttentionTask>& tasks) {
  std::vector<MarginProblem> problems;
  problems.reserve(tasks.size());
  for (const AttentionTask& task : tasks)
    problems.push_back(MarginProblem::attention(task, optimal_tokens(task).selection));
  return problems;
}

void run_many(const Options& options) {
  std::vector<AttentionTask> tasks;
  for (std::uint32_t k = 0; k < options.count; ++k)
    tasks.push_back(generate({.n = options.size.n, .T = options.size.T, .d = options.size.d}, 1, k).task);
  const std::vector<MarginProblem> problems = problems_of(tasks);
  const SolveSettings settings{.norm = Norm::parse(options.norm)};
  Threads alone(1), together(options.threads);
  MarginSolver solver(alone), solver_of_many(together);
  std::vector<MarginSolution> one_by_one(problems.size());
  std::span<const MarginSolution> at_once;
  std::vector<Contender> ways{{"one by one",
                               [&] {
                                 for (std::size_t k = 0; k < problems.size(); ++k)
                                   one_by_one[k] = solver.solve(problems[k], settings);
                               }},
                              {"solve_many", [&] { at_once = solver_of_many.solve_many(problems, settings); }}};
  interleave(ways, 7);
  for (const Contender& way : ways) {
    const std::span<const MarginSolution> answers = &way == &ways[0] ? one_by_one : at_once;
    Verdicts verdicts;
    for (std::size_t k = 0; k < problems.size(); ++k) verdicts.add(problems[k], answers[k]);
    Json line{{"name", way.name},
              {"threads", &way == &ways[0] ? 1 : together.count()},
              {"problems", options.count},
              {"seconds", divided(way.seconds, static_cast<double>(options.count))}};
    verdicts.add_to(line);
    emit(line);
  }
}

AttentionTask assorted_task(std::uint32_t k) {
  const Random shape(7, k, 1000);
  const auto draw = [&](std::uint64_t position, std::uint64_t most) {
    return static_cast<Index>(1 + shape.below(most, position));
  };
  const bool prompt = shape.below(4, 3) == 0;
  return generate({.n = draw(0, 8),
                   .T = 1 + draw(1, 8),
                   .d = draw(2, 10),
                   .pattern = prompt ? QueryPattern::prompt : QueryPattern::cross},
                  7, k)
      .task;
}

void run_census(std::uint32_t count) {
  constexpr std::uint32_t kBatch = 5000;
  Threads threads;
  Verdicts verdicts;
  std::vector<double> seconds;
  for (std::uint32_t begin = 0; begin < count; begin += kBatch) {
    std::vector<AttentionTask> tasks;
    for (std::uint32_t k = begin; k < std::min(count, begin + kBatch); ++k) tasks.push_back(assorted_task(k));
    const std::vector<MarginProblem> problems = problems_of(tasks);
    std::vector<MarginSolution> solutions;
    seconds.push_back(seconds_of([&] { solutions = solve_many(problems, {}, threads); }) /
                      static_cast<double>(problems.size()));
    for (std::size_t k = 0; k < problems.size(); ++k) verdicts.add(problems[k], solutions[k]);
  }
  Json line{{"name", "census"}, {"threads", threads.count()}, {"problems", count}, {"seconds", seconds}};
  verdicts.add_to(line);
  emit(line);
  if (verdicts.wrong > 0) throw std::runtime_error(fmt::format("{} answers of the census are wrong", verdicts.wrong));
}

}  // namespace

void add_batches(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* many = program.add_subcommand("many", "Random problems of one size, one by one and at once");
  add_size_options(*many, options->size);
  many->add_option("--norm", options->norm, "fro, nuc or lp:P");
  many->add_option("--count", options->count, "Problems");
  many->add_option("--threads", options->threads, "Threads of solve_many; 0: all cores");
  many->callback([options] { run_many(*options); });

  auto count = std::make_shared<std::uint32_t>(100'000);
  CLI::App* census = program.add_subcommand("census", "Assorted small problems; fails if an answer is wrong");
  census->add_option("--count", *count, "Problems");
  census->callback([count] { run_census(*count); });
}

}  // namespace attsvm::bench
