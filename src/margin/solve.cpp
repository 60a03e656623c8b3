#include <atomic>

#include "attsvm/margin.h"
#include "base/decompositions.h"
#include "base/refuse.h"
#include "margin/pursuit.h"

namespace attsvm {

using namespace internal;

namespace {

void require_sensible(const SolveSettings& settings) {
  if (!(settings.tolerance > 0 && settings.tolerance < 1))
    refuse("tolerance = {}; must be > 0 and < 1", settings.tolerance);
  if (!(settings.time_limit >= 0)) refuse("time_limit = {}; must be at least 0", settings.time_limit);
  if (settings.iteration_limit < 0) refuse("iteration_limit = {}; must be at least 0", settings.iteration_limit);
}

bool can_start_from(const MarginSolution* warm, const MarginProblem& problem) {
  return warm != nullptr && warm->status != MarginStatus::infeasible && warm->dual.size() == problem.rows();
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

struct MarginSolver::State {
  explicit State(Threads& threads) : memory(threads) {}
  SolverMemory memory;
};

MarginSolver::MarginSolver(Threads& threads) : state_(std::make_unique<State>(threads)) {}
MarginSolver::~MarginSolver() = default;

void MarginSolver::solve(const MarginProblem& problem, const SolveSettings& settings, MarginSolution& solution) {
  require_sensible(settings);
  StopRule stop(settings);
  const bool warm = can_start_from(settings.warm_start, problem);
  Pursuit pursuit(state_->memory, problem, settings.norm, settings.tolerance, warm ? settings.warm_start : nullptr,
                  stop, solution);
  pursuit.follow(methods_for(settings.norm));
  solution.warm_started = warm;
  if (solution.status == MarginStatus::stalled && stop.stopped()) solution.status = MarginStatus::limit;
  solution.history.push_back({solution.iterations, solution.objective, solution.dual_objective, stop.seconds()});
}

MarginSolution solve(const MarginProblem& problem, const SolveSettings& settings, Threads& threads) {
  MarginSolution solution;
  MarginSolver(threads).solve(problem, settings, solution);
  return solution;
}

void solve_many(std::span<const MarginProblem> problems, const SolveSettings& settings, Threads& threads,
                std::vector<MarginSolution>& solutions) {
  require_sensible(settings);
  solutions.resize(problems.size());
  SolveSettings each = settings;
  each.progress = nullptr;
  std::atomic<std::size_t> next = 0;
  threads.for_each(threads.count(), [&](std::int64_t) {  // one solver per thread, which reuses its memory
    Threads alone(1);
    MarginSolver solver(alone);
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < problems.size();) {
      solver.solve(problems[k], each, solutions[k]);
    }
  });
}

Index numerical_rank(const RowMatrix& W) {
  if (W.size() == 0) return 0;
  const Eigen::VectorXd sigma = singular_values(W);
  return (sigma.array() > 1e-10 * sigma(0)).count();
}

}  // namespace attsvm
