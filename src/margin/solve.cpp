#include <atomic>
#include <cmath>

#include "attsvm/margin.h"
#include "base/decompositions.h"
#include "base/memory.h"
#include "base/refuse.h"
#include "base/time_limit.h"
#include "margin/device/solves.h"
#include "margin/pursuit.h"
#include "margin/soft/soft_solver.h"

namespace attsvm {

using namespace internal;

namespace {

void require_sensible(const SolveSettings& settings) {
  if (!(settings.tolerance > 0 && settings.tolerance < 1))
    refuse("tolerance = {}; must be > 0 and < 1", settings.tolerance);
  require_time_limit(settings.time_limit);
  if (settings.iteration_limit < 0) refuse("iteration_limit = {}; must be at least 0", settings.iteration_limit);
  for (const double penalty : settings.soft) {
    if (!(penalty > 0 && std::isfinite(penalty))) refuse("soft = {}; a penalty must be a finite number > 0", penalty);
  }
  if (!settings.soft.empty() && !settings.norm.is_frobenius())
    refuse("soft: a soft margin exists for the Frobenius norm only, not for {}", settings.norm.name());
}

bool can_start_from(const MarginSolution* warm, const MarginProblem& problem) {
  if (warm == nullptr || warm->status == MarginStatus::infeasible || warm->dual.size() != problem.rows()) return false;
  if (warm->K.size() == 0) return true;
  return warm->K.rows() == problem.d() && warm->Q.rows() == problem.dz() && warm->K.cols() == warm->Q.cols();
}

}  // namespace

std::string_view name_of(MarginStatus status) {
  switch (status) {
    case MarginStatus::optimal:
      return "optimal";
    case MarginStatus::infeasible:
      return "infeasible";
    case MarginStatus::limit:
      return "limit";
    case MarginStatus::stalled:
      return "stalled";
  }
  throw std::logic_error("unknown status");
}

namespace {

/// C of every query. InputError unless there is one for all or one each.
std::vector<double> penalties(const SolveSettings& settings, const MarginProblem& problem) {
  const auto queries = static_cast<std::size_t>(problem.task().queries());
  if (problem.kind() == ProblemKind::graph) refuse("soft: a next-token task has no soft margin");
  if (settings.soft.size() != 1 && settings.soft.size() != queries)
    refuse("soft has {} penalties; must be one for all queries, or {}, one each", settings.soft.size(), queries);
  return settings.soft.size() == queries ? settings.soft : std::vector<double>(queries, settings.soft.front());
}

void solve_hard(MarginSolution& solution, const MarginProblem& problem, const SolveSettings& settings,
                const MarginSolution* warm_start, SolverMemory& memory, StopRule& stop) {
  const bool warm = can_start_from(warm_start, problem);
  Pursuit pursuit(memory, problem, settings.norm, settings.tolerance, warm ? warm_start : nullptr, stop, solution);
  pursuit.follow(methods_for(settings.norm));
  solution.warm_started = warm;
}

/// InputError if not even W and what every method keeps beside it fit into memory. Measured from d = dz = 1,000 on, the
/// Frobenius norm takes 4 to 6 times the memory of W, others more.
void require_memory_for(const MarginProblem& problem) {
  constexpr double kBytes = 4 * sizeof(double);
  require_memory(kBytes * static_cast<double>(problem.d()) * static_cast<double>(problem.dz()),
                 fmt::format("solving for W of {} x {}", problem.d(), problem.dz()));
}

/// Writes the answer to `solution` and reuses its memory.
void solve_into(MarginSolution& solution, const MarginProblem& problem, const SolveSettings& settings,
                const MarginSolution* warm_start, SolverMemory& memory) {
  require_memory_for(problem);
  StopRule stop(settings);
  if (settings.soft.empty()) {
    solution.penalty.clear();
    solution.xi.resize(0);
    solve_hard(solution, problem, settings, warm_start, memory, stop);
  } else {
    SoftSolver(problem, penalties(settings, problem), settings.tolerance, stop, memory.threads)
        .solve([&](MarginSolution& hard) { solve_hard(hard, problem, settings, nullptr, memory, stop); }, solution);
  }
  if (solution.status == MarginStatus::stalled && stop.stopped()) solution.status = MarginStatus::limit;
  solution.history.push_back({solution.iterations, solution.objective, solution.dual_objective, stop.seconds()});
}

double squared_rows(std::span<const MarginProblem> problems) {
  double sum = 0;
  for (const MarginProblem& problem : problems) sum += std::pow(static_cast<double>(problem.rows()), 2);
  return sum;
}

/// Solves on the GPU what it can take, if that is worth it, and marks what is solved.
std::vector<std::uint8_t> solve_on_device_if_any(std::vector<MarginSolution>& solutions,
                                                 std::span<const MarginProblem> problems, const SolveSettings& settings,
                                                 Threads& threads) {
  std::vector<std::uint8_t> solved(problems.size(), 0);
  if (threads.device() == Device::automatic && !worth_a_device(squared_rows(problems))) return solved;
  Cuda* cuda = device_for(settings, threads);
  if (cuda == nullptr) return solved;
  solved = solve_on_device(*cuda, problems, settings, threads, solutions);
  const auto on_gpu = static_cast<std::size_t>(std::count(solved.begin(), solved.end(), 1));
  count_batch(on_gpu, solved.size() - on_gpu);
  return solved;
}

void solve_many_into(std::vector<MarginSolution>& solutions, std::span<const MarginProblem> problems,
                     const SolveSettings& settings, Threads& threads) {
  require_sensible(settings);
  solutions.resize(problems.size());
  SolveSettings each = settings;
  each.progress = nullptr;
  const std::vector<std::uint8_t> solved = solve_on_device_if_any(solutions, problems, each, threads);
  std::atomic<std::size_t> next = 0;
  threads.for_each(threads.count(), [&](std::int64_t) {
    Threads alone(1);
    SolverMemory memory(alone);
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < problems.size();) {
      if (solved[k] == 0) solve_into(solutions[k], problems[k], each, nullptr, memory);
    }
  });
}

}  // namespace

MarginSolution solve(const MarginProblem& problem, const SolveSettings& settings, Threads& threads,
                     const MarginSolution* warm_start) {
  require_sensible(settings);
  MarginSolution solution;
  SolverMemory memory(threads);
  solve_into(solution, problem, settings, warm_start, memory);
  return solution;
}

std::vector<MarginSolution> solve_many(std::span<const MarginProblem> problems, const SolveSettings& settings,
                                       Threads& threads) {
  std::vector<MarginSolution> solutions;
  solve_many_into(solutions, problems, settings, threads);
  return solutions;
}

struct MarginSolver::State {
  explicit State(Threads& threads) : memory(threads) {}
  SolverMemory memory;
  MarginSolution solution, warm_start;
  std::vector<MarginSolution> solutions;
};

MarginSolver::MarginSolver(Threads& threads) : state_(std::make_unique<State>(threads)) {}
MarginSolver::~MarginSolver() = default;

const MarginSolution& MarginSolver::solve(const MarginProblem& problem, const SolveSettings& settings,
                                          const MarginSolution* warm_start) {
  require_sensible(settings);
  if (warm_start == &state_->solution) {  // which the answer is about to replace
    std::swap(state_->solution, state_->warm_start);
    warm_start = &state_->warm_start;
  }
  solve_into(state_->solution, problem, settings, warm_start, state_->memory);
  return state_->solution;
}

std::span<const MarginSolution> MarginSolver::solve_many(std::span<const MarginProblem> problems,
                                                         const SolveSettings& settings) {
  solve_many_into(state_->solutions, problems, settings, state_->memory.threads);
  return state_->solutions;
}

Index numerical_rank(const RowMatrix& W) {
  if (W.size() == 0) return 0;
  const Eigen::VectorXd sigma = singular_values(W);
  return (sigma.array() > 1e-10 * sigma(0)).count();
}

}  // namespace attsvm
