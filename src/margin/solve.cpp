#include <Eigen/SVD>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "attsvm/margin.h"
#include "base/refuse.h"
#include "margin/certificate.h"
#include "margin/exact_solver.h"

namespace attsvm {
namespace {

void require_sensible(const SolveSettings& settings) {
  if (!(settings.tolerance > 0)) refuse("tolerance = {}; must be > 0", settings.tolerance);
  if (!(settings.time_limit >= 0)) refuse("time_limit = {}; must be at least 0", settings.time_limit);
  if (settings.iteration_limit < 0) refuse("iteration_limit = {}; must be at least 0", settings.iteration_limit);
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
  }
  throw std::logic_error("unknown status");
}

struct MarginSolver::State {
  explicit State(Threads& pool) : threads(pool) {}

  Threads& threads;
  ExactSolver exact;
  Certifier certifier;
  IndexList support;
};

MarginSolver::MarginSolver(Threads& threads) : state_(std::make_unique<State>(threads)) {}
MarginSolver::~MarginSolver() = default;

void MarginSolver::solve(const MarginProblem& problem, const SolveSettings& settings, MarginSolution& solution) {
  require_sensible(settings);
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  State& state = *state_;
  solution.history.clear();

  state.support.clear();
  const MarginSolution* warm = settings.warm_start;
  solution.warm_started =
      warm != nullptr && warm->status != MarginStatus::infeasible && warm->dual.size() == problem.rows();
  for (Index k = 0; solution.warm_started && k < problem.rows(); ++k) {
    if (warm->dual(k) != 0) state.support.push(k);
  }

  SolveProgress progress{.objective = std::numeric_limits<double>::infinity()};
  const auto stop = [&] {
    ++progress.iteration;
    if (settings.iteration_limit > 0 && progress.iteration > settings.iteration_limit) return true;
    if (settings.time_limit == 0 && !settings.progress) return false;
    progress.seconds = seconds();
    if (settings.time_limit > 0 && progress.seconds > settings.time_limit) return true;
    return settings.progress && settings.progress(progress);
  };
  const ExactSolver::Outcome outcome = state.exact.solve(problem, state.support, stop);
  state.exact.write(solution.W, solution.dual);
  solution.iterations = state.exact.iterations();
  solution.method = state.exact.was_robust() ? "dual active set" : "block pivoting";
  if (outcome != ExactSolver::Outcome::infeasible || !state.certifier.certify_conflict(problem, solution)) {
    state.certifier.certify(problem, settings.tolerance, solution);
  }
  solution.history.push_back({solution.iterations, solution.objective, solution.dual_objective, seconds()});
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
  threads.for_each(threads.count(), [&](std::int64_t) {  // one solver a thread, warm from its second problem on
    Threads alone(1);
    MarginSolver solver(alone);
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < problems.size();) {
      solver.solve(problems[k], each, solutions[k]);
    }
  });
}

Index numerical_rank(const RowMatrix& W) {
  if (W.size() == 0) return 0;
  const Eigen::VectorXd sigma = Eigen::BDCSVD<Eigen::MatrixXd>(W).singularValues();
  return (sigma.array() > 1e-10 * sigma(0)).count();
}

std::vector<std::string> describe_conflict(const MarginProblem& problem, const Eigen::VectorXd& dual,
                                           std::size_t most) {
  std::vector<Index> order;
  std::vector<const MarginGroup*> group_of(static_cast<std::size_t>(problem.rows()));
  for (const MarginGroup& group : problem.groups()) {
    for (Index k = group.first_row; k < group.first_row + group.rows; ++k) {
      group_of[static_cast<std::size_t>(k)] = &group;
      if (dual(k) != 0) order.push_back(k);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return std::abs(dual(a)) > std::abs(dual(b)); });
  std::vector<std::string> lines;
  Eigen::VectorXd delta(problem.d());
  for (const Index k : order) {
    if (lines.size() == most) {
      lines.push_back(fmt::format("... {} rows in all", order.size()));
      break;
    }
    const MarginGroup& group = *group_of[static_cast<std::size_t>(k)];
    problem.delta(group, k, delta.data());
    const Index t = problem.drop(k);
    std::string what =
        t < 0 ? fmt::format("query {}: the value of token {} on the side of its label", group.query, group.keep)
        : problem.equal(k) ? fmt::format("query {}: tokens {} and {} level", group.query, group.keep, t)
                           : fmt::format("query {}: keep token {} over {}", group.query, group.keep, t);
    if (t >= 0 && delta.isZero(0)) {
      what += ", but the two tokens are equal";
    } else if (ConstVector(group.z, problem.dz()).isZero(0)) {
      what += ", but its query vector is zero";
    }
    lines.push_back(fmt::format("{} (weight {:.3g})", what, dual(k)));
  }
  return lines;
}

}  // namespace attsvm
