// One margin problem from a file: time, memory, and the quality of the answer. The limits are measured in the same
// process before and after, so that a change in the machine's speed affects both.

#include <limits>

#include "base/blas.h"
#include "bench.h"
#include "margin/rows/scaled_problem.h"
#include "measure.h"

namespace attsvm::bench {
namespace {

struct Options {
  std::string task, norm = "fro", out;
  int threads = 1;
  double budget = 0.3, tolerance = 1e-8, time_limit = 0;
  bool limits = false;
};

/// One pricing pass, which finds the least value per query: best of five.
double time_pricing(const MarginProblem& problem, const RowMatrix& W, Threads& threads) {
  const SingleThreadBlas single_thread;
  ScaledProblem scaled(problem, threads);
  std::vector<double> worst(static_cast<std::size_t>(scaled.groups()));
  std::vector<Contender> pass{{"", [&] {
                                 scaled.price(W.data(), [&](Index i, const double* logits) {
                                   double top = -std::numeric_limits<double>::infinity();
                                   for (Index t = 0; t < scaled.tokens(i); ++t) top = std::max(top, logits[t]);
                                   worst[static_cast<std::size_t>(i)] = logits[scaled.group(i).keep] - top;
                                 });
                               }}};
  interleave(pass, 5);
  return least(pass[0].seconds);
}

/// The time at which the solve had proven a gap, from its history.
double seconds_to(double gap, const MarginSolution& solution) {
  for (const SolveProgress& at : solution.history) {
    if (std::isfinite(at.objective) && at.objective - at.dual_objective <= gap * at.objective) return at.seconds;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// The lower limit of an interior point method: 25 normal matrices and their factorizations at GEMM speed.
double normal_matrices_seconds(const MarginProblem& problem, const Speeds& speeds) {
  const auto d = static_cast<double>(problem.d()), dz = static_cast<double>(problem.dz()), unknowns = d * dz;
  const double products = d * (d + 1) / 2 * dz * (dz + 1) / 2 * static_cast<double>(problem.groups().size());
  return 25 * (2 * products + unknowns * unknowns * unknowns / 3) / speeds.multiply;
}

void run_solve(const Options& options) {
  Threads threads(options.threads);
  const AttentionTask task = load_task(options.task, threads);
  const Selection selection = task.select() ? *task.select() : optimal_tokens(task).selection;
  const MarginProblem problem = MarginProblem::attention(task, selection);
  Speeds speeds;
  if (options.limits) measure_speeds(threads, speeds);
  MarginSolver solver(threads);
  const MarginSolution* answer = nullptr;
  const SolveSettings settings{
      .norm = Norm::parse(options.norm), .tolerance = options.tolerance, .time_limit = options.time_limit};
  forget_peak_memory();
  std::vector<double> to_1e_6;  // of every solve, the warm-up too
  const std::vector<double> seconds = sample(options.budget, [&] {
    answer = &solver.solve(problem, settings);
    if (options.limits) to_1e_6.push_back(seconds_to(1e-6, *answer));
  });
  const MarginSolution& solution = *answer;
  const double memory = peak_memory();
  if (options.limits) measure_speeds(threads, speeds);

  const auto n = static_cast<double>(problem.groups().size()), d = static_cast<double>(problem.d()),
             dz = static_cast<double>(problem.dz());
  const double bytes = 8 * d * static_cast<double>(task.tokens());
  Json line{{"name", "solve"},
            {"threads", threads.count()},
            {"seconds", seconds},
            {"status", name_of(solution.status)},
            {"method", solution.method},
            {"gap", solution.gap},
            {"objective", solution.objective},
            {"violation", solution.violation},
            {"rows", problem.rows()},
            {"support", solution.support},
            {"iterations", solution.iterations},
            {"rank", options.norm == "nuc" ? solution.rank.rank : numerical_rank(solution.W)},
            {"certified", solution.rank.certified},
            {"token_bytes", bytes},
            {"peak_memory", memory}};
  if (options.limits) {
    const double reading = bytes / speeds.read, multiplying = 2 * n * d * dz / speeds.multiply;
    line.update({{"limit_read", reading},
                 {"limit_multiply", multiplying},
                 {"pricing", time_pricing(problem, solution.W, threads)},
                 {"to_1e-6", median(to_1e_6)}});
    if (solution.method == "interior point") line["normal_matrices"] = normal_matrices_seconds(problem, speeds);
  }
  if (!options.out.empty()) save_solution(options.out, stored(problem, solution, options.tolerance), true);
  emit(line);
}

}  // namespace

void add_solve(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("solve", "One margin problem from a file");
  auto options = std::make_shared<Options>();
  verb->add_option("task", options->task)->required();
  verb->add_option("--norm", options->norm, "fro, nuc or lp:P");
  verb->add_option("--threads", options->threads, "Threads; 0: all cores");
  verb->add_option("--budget", options->budget, "Seconds of sampling");
  verb->add_option("--tolerance", options->tolerance);
  verb->add_option("--time-limit", options->time_limit, "Seconds per solve");
  verb->add_flag("--limits", options->limits, "Also measure the machine's limits");
  verb->add_option("-o,--out", options->out, "Solution file");
  verb->callback([options] { run_solve(*options); });
}

}  // namespace attsvm::bench
