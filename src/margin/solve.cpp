#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "attsvm/margin.h"
#include "attsvm/stored.h"
#include "base/decompositions.h"
#include "base/refuse.h"
#include "margin/certificate.h"
#include "margin/conflict_search.h"
#include "margin/entrywise_solver.h"
#include "margin/exact_solver.h"
#include "margin/interior_point.h"
#include "margin/nuclear_solver.h"
#include "margin/nuclear_working_set.h"
#include "margin/tolerances.h"
#include "margin/wide_active_set.h"
#include "margin/wide_path.h"
#include "margin/working_set.h"

namespace attsvm {
namespace {

constexpr Index kExactRows = 1500;   // up to here the exact solver is also the fastest
constexpr Index kNuclearRows = 600;  // from here on a working set is faster than methods that factorise all active rows
constexpr Index kMostUnknowns = 2048;  // of the interior point method, which factorises a matrix of that size
constexpr Index kRowsPerUnknown = 8;
constexpr double kStartTolerance = 1e-2;  // of the Frobenius answer a large nuclear solve starts from
constexpr Index kLastRows = 10'000;       // rows up to which the exact solver may be the last resort: 0.8 GB
// What is added to right-hand sides, relative to ‖δ‖ ‖W‖ ‖ζ‖, so that W meets the rows after rounding.
constexpr double kLift = 2 * kMeet, kWideLift = 0.3 * kEpsilon;
constexpr double kCertainConflict = 1e14;    // conflict_factor() beyond which no W is looked for
constexpr Index kMostProducts = 20'000'000;  // multiplications up to which rows that ask for 0 are looked at by verify
constexpr Index kExactNumbers = 25'000'000;  // rows · d up to which the exact solver may copy all rows as a last resort

void require_sensible(const SolveSettings& settings) {
  if (!(settings.tolerance > 0 && settings.tolerance < 1))
    refuse("tolerance = {}; must be > 0 and < 1", settings.tolerance);
  if (!(settings.time_limit >= 0)) refuse("time_limit = {}; must be at least 0", settings.time_limit);
  if (settings.iteration_limit < 0) refuse("iteration_limit = {}; must be at least 0", settings.iteration_limit);
}

/// Which of two answers tells more: the gap decides, where there is one, else the bound.
bool is_better(const MarginSolution& a, const MarginSolution& b) {
  if (is_settled(a.status) != is_settled(b.status)) return is_settled(a.status);
  if (std::isnan(a.gap) != std::isnan(b.gap)) return std::isnan(b.gap);
  return std::isnan(a.gap) ? a.dual_objective > b.dual_objective : a.gap < b.gap;
}

/// No W near this one is known to meet the rows.
void withdraw(MarginSolution& solution) {
  solution.status = MarginStatus::stalled;
  solution.gap = std::numeric_limits<double>::quiet_NaN();
  solution.rank = {.rank = solution.K.cols(), .words = "the answer is not proven optimal"};
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

/// One solve: which method, and what becomes of its answer.
struct MarginSolver::State {
  explicit State(Threads& pool) : threads(pool), certifier(pool) {}

  void solve_frobenius(const MarginProblem& problem, MarginSolution& solution);
  bool start_from_frobenius(const MarginProblem& problem, double start_tolerance, MarginSolution& solution);
  void solve_nuclear(const MarginProblem& problem, MarginSolution& solution);
  void polish_nuclear(const MarginProblem& problem, MarginSolution& solution);
  void solve_nuclear_at_scale(const MarginProblem& problem, const MarginSolution& first, MarginSolution& solution);
  void solve_entrywise(const MarginProblem& problem, MarginSolution& solution);
  void solve_exactly(const MarginProblem& problem, MarginSolution& solution);
  void solve_widely(const MarginProblem& problem, MarginSolution& solution);
  template <class Solve>
  void lift(const MarginProblem& problem, MarginSolution& solution, const Solve& solve_lifted);
  bool holds(const MarginProblem& problem, const MarginSolution& solution);
  void solve_at_scale(const MarginProblem& problem, MarginSolution& solution);
  template <class Solver>
  void take(const MarginProblem& problem, const Solver& solver, std::string_view method, MarginSolution& solution);
  static bool suits_nuclear_working_set(const MarginProblem& problem);
  static bool suits_interior_point(const MarginProblem& problem);
  bool stop(const SolveProgress& progress);
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }

  Threads& threads;
  ExactSolver exact;
  NuclearSolver nuclear;
  EntrywiseSolver entrywise;
  Certifier certifier;
  IndexList support;
  MarginSolution frobenius;  // where other norms start from
  MarginSolution other;      // a second candidate
  const SolveSettings* settings = nullptr;
  double tolerance = 0;  // of the method at work
  std::chrono::steady_clock::time_point start;
  Index asked = 0;  // how often a method asked whether to stop
  bool stopped = false;
  bool held = false;  // whether verify has seen the answer at hand, and accepted it
};

bool MarginSolver::State::stop(const SolveProgress& progress) {
  ++asked;
  stopped = stopped || (settings->iteration_limit > 0 && asked > settings->iteration_limit) ||
            (settings->time_limit > 0 && seconds() > settings->time_limit) ||
            (settings->progress && settings->progress(progress));
  return stopped;
}

void MarginSolver::State::solve_exactly(const MarginProblem& problem, MarginSolution& solution) {
  support.clear();
  for (Index k = 0; solution.warm_started && k < problem.rows(); ++k) {
    if (settings->warm_start->dual(k) != 0) support.push(k);
  }
  const auto ask = [&] {
    return stop({.iteration = asked,
                 .objective = std::numeric_limits<double>::infinity(),
                 .seconds = settings->progress ? seconds() : 0});
  };
  const ExactSolver::Outcome outcome = exact.solve(problem, support, ask);
  exact.write(solution.W, solution.dual);
  solution.iterations += exact.iterations();
  solution.method = exact.was_robust() ? "dual active set" : "block pivoting";
  if (outcome == ExactSolver::Outcome::infeasible && certifier.certify_conflict(problem, solution)) {
    if (certifier.conflict_factor() >= kCertainConflict || !WideActiveSet::suits(problem)) return;
    solve_widely(problem, solution);  // a W that large may exist
    return;
  }
  certifier.certify(problem, tolerance, solution);
  if (outcome == ExactSolver::Outcome::optimal && solution.status != MarginStatus::optimal) {
    support.clear();
    for (Index k = 0; k < problem.rows(); ++k) {
      if (solution.dual(k) != 0) support.push(k);
    }
    lift(problem, solution, [&](double size, RowMatrix& W, Eigen::VectorXd& lambda) {
      exact.solve(problem, support, ask, kLift * size);
      exact.write(W, lambda);
    });
  }
  const bool settled = solution.status == MarginStatus::optimal && holds(problem, solution);
  if (!settled && !stopped && WideActiveSet::suits(problem)) solve_widely(problem, solution);
}

/// Rounding W can leave rows short, and where ‖W‖ is huge scaling it up costs more than the tolerance: a solve with
/// right-hand sides that are larger by rounding gives a W that meets the rows as they are. `solve_lifted` takes ‖W‖.
template <class Solve>
void MarginSolver::State::lift(const MarginProblem& problem, MarginSolution& solution, const Solve& solve_lifted) {
  if (stopped || !(solution.dual_objective > 0)) return;
  other = solution;
  solve_lifted(solution.dual_objective, other.W, other.dual);
  other.dual = solution.dual;
  certifier.certify(problem, tolerance, other);
  if (is_better(other, solution)) std::swap(solution, other);
}

/// Where every row asks for something, scaling has made W meet it, and the gap is a proof. A row that asks for 0 is
/// only met to rounding, and where such rows nearly depend on each other that may not do: verify looks for a W nearby
/// that meets them, unless they plainly do not.
bool MarginSolver::State::holds(const MarginProblem& problem, const MarginSolution& solution) {
  const auto groups = static_cast<Index>(problem.groups().size());
  if (problem.all_positive() || problem.kind() == ProblemKind::finite ||
      problem.d() * (problem.rows() + 2 * groups * problem.dz()) > kMostProducts)
    return true;
  held = certifier.is_near_homogeneous(problem, tolerance, solution) ||
         verify(problem.task(), stored(problem, solution, tolerance), {.tolerance = tolerance}).valid;
  return held;
}

/// The last resort of small problems: where double cannot tell which rows depend on each other, or conflict.
void MarginSolver::State::solve_widely(const MarginProblem& problem, MarginSolution& solution) {
  WideActiveSet wide;
  const WideActiveSet::Outcome outcome = wide.solve(problem, solution.dual, [&] { return stop({.iteration = asked}); });
  solution.iterations += wide.iterations();
  if (outcome == WideActiveSet::Outcome::stopped) {  // only an end is worth more than what double found
    if (solution.status == MarginStatus::optimal) withdraw(solution);
    return;
  }
  MarginSolution before = solution;
  wide.write(solution.W, solution.dual);
  solution.method = "dual active set in 512 bits";
  if (outcome == WideActiveSet::Outcome::infeasible && certifier.certify_conflict(problem, solution)) return;
  if (outcome == WideActiveSet::Outcome::infeasible) {  // which rounding its multipliers hides
    if (before.status == MarginStatus::optimal) withdraw(before);
    solution = std::move(before);
    return;
  }
  certifier.certify(problem, tolerance, solution);
  if (solution.status != MarginStatus::optimal) {
    lift(problem, solution, [&](double size, RowMatrix& W, Eigen::VectorXd& lambda) {
      wide.solve(
          problem, solution.dual, [&] { return stop({.iteration = asked}); }, kWideLift * size);
      wide.write(W, lambda);
    });
  }
  if (solution.status == MarginStatus::optimal && holds(problem, solution)) return;
  if (solution.status == MarginStatus::optimal) withdraw(solution);
  other = solution;  // multipliers so large that rounding them shows: those of fewer rows may prove more
  other.dual = before.dual;
  certifier.certify(problem, tolerance, other);
  if (other.status == MarginStatus::optimal && !holds(problem, other)) withdraw(other);
  if (is_better(other, solution)) std::swap(solution, other);
}

template <class Solver>
void MarginSolver::State::take(const MarginProblem& problem, const Solver& solver, std::string_view method,
                               MarginSolution& solution) {
  solver.write(solution.W, solution.dual);
  solution.iterations += solver.iterations();
  solution.history = solver.history();
  solution.method = method;
  certifier.certify(problem, tolerance, solution);
}

/// Far more rows than unknowns: the support would be as large as the space, and methods on the dual face fail.
bool MarginSolver::State::suits_interior_point(const MarginProblem& problem) {
  const Index unknowns = problem.d() * problem.dz();
  if (unknowns > kMostUnknowns || problem.rows() < kRowsPerUnknown * unknowns) return false;
  for (Index k = 0; k < problem.rows(); ++k) {
    if (problem.equal(k)) return false;
  }
  return true;
}

void MarginSolver::State::solve_at_scale(const MarginProblem& problem, MarginSolution& solution) {
  const auto ask = [&](const SolveProgress& progress) { return stop(progress); };
  if (suits_interior_point(problem)) {
    InteriorPointSolver solver(problem, threads);
    solver.solve(tolerance, ask);
    take(problem, solver, "interior point", solution);
  } else {
    WorkingSetSolver solver(problem, threads);
    solver.solve(tolerance, solution.warm_started ? &settings->warm_start->dual : nullptr, ask);
    take(problem, solver, "working set", solution);
  }
  if (solution.status == MarginStatus::optimal || stopped) return;

  ConflictSearch search = search_conflict(problem, threads, [&] { return stop({.iteration = asked}); });
  solution.iterations += search.iterations;
  if (search.outcome == ConflictSearch::Outcome::conflict) {
    MarginSolution proof = solution;
    proof.dual = std::move(search.lambda);
    if (certifier.certify_conflict(problem, proof)) {
      proof.method = "conflict search";
      solution = std::move(proof);
      return;
    }
  }
  if (stopped || problem.rows() > kLastRows || problem.rows() * problem.d() > kExactNumbers) return;
  MarginSolution before = solution;
  solve_exactly(problem, solution);  // finite, however hard
  if (is_better(before, solution)) std::swap(before, solution);
}

void MarginSolver::State::solve_frobenius(const MarginProblem& problem, MarginSolution& solution) {
  solution.norm = Norm::frobenius();
  if (problem.rows() <= kExactRows || problem.kind() == ProblemKind::value) {
    solve_exactly(problem, solution);
  } else {
    solve_at_scale(problem, solution);
  }
}

/// Rows are the same in every norm: the Frobenius solver finds conflicts, and where the others start. False: there is
/// nothing left to do.
bool MarginSolver::State::start_from_frobenius(const MarginProblem& problem, double start_tolerance,
                                               MarginSolution& solution) {
  frobenius.iterations = 0;
  frobenius.history.clear();
  frobenius.warm_started = solution.warm_started;
  tolerance = start_tolerance;
  solve_frobenius(problem, frobenius);
  tolerance = settings->tolerance;
  held = false;
  solution.iterations += frobenius.iterations;
  if (frobenius.status != MarginStatus::infeasible) return true;
  const Index iterations = solution.iterations;
  solution = frobenius;
  solution.norm = settings->norm;
  solution.iterations = iterations;
  if (settings->norm.kind != NormKind::nuclear) return false;
  solution.K.resize(problem.d(), 0);
  solution.Q.resize(problem.dz(), 0);
  solution.rank = {.words = "the rows conflict"};
  return false;
}

/// Where W is a vector the norms agree, and the Frobenius answer is the nuclear one.
bool MarginSolver::State::suits_nuclear_working_set(const MarginProblem& problem) {
  return problem.rows() > kNuclearRows && problem.kind() != ProblemKind::value && problem.d() > 1 && problem.dz() > 1 &&
         problem.groups().size() > 1;
}

void MarginSolver::State::solve_nuclear_at_scale(const MarginProblem& problem, const MarginSolution& first,
                                                 MarginSolution& solution) {
  const double before = seconds();
  NuclearWorkingSet solver(problem, threads);
  solver.solve(tolerance, first.W, first.dual, [&](SolveProgress progress) {
    progress.seconds += before;
    return stop(progress);
  });
  solver.write(solution.K, solution.Q, solution.dual);
  solution.iterations += solver.iterations();
  solution.history = solver.history();
  for (SolveProgress& each : solution.history) each.seconds += before;
  solution.method = "nuclear working set";
  certifier.certify(problem, tolerance, solution);
  if (solution.status != MarginStatus::optimal || problem.rows() > kExactRows || stopped) return;
  if (!nuclear.refine(problem, solution)) return;  // to rounding, where that costs little
  other = solution;
  nuclear.write(other.K, other.Q, other.dual);
  other.iterations += nuclear.iterations();
  other.method = "nuclear working set, Newton on the face";
  certifier.certify(problem, tolerance, other);
  if (other.gap < solution.gap) std::swap(solution, other);
}

void MarginSolver::State::solve_nuclear(const MarginProblem& problem, MarginSolution& solution) {
  const auto take = [&](MarginSolution& into) {
    nuclear.write(into.K, into.Q, into.dual);
    into.iterations += nuclear.iterations();
    into.method = nuclear.method();
    certifier.certify(problem, tolerance, into);
  };
  const bool large = suits_nuclear_working_set(problem);
  const MarginSolution* warm = settings->warm_start;
  if (solution.warm_started && warm->K.cols() > 0 && warm->W.rows() == problem.d() && warm->W.cols() == problem.dz()) {
    if (large) {
      solution.K = warm->K;
      solution.Q = warm->Q;
      solution.dual = warm->dual;
      solution.method = "warm start";
      certifier.certify(problem, tolerance, solution);
      if (solution.status == MarginStatus::optimal) return;
      solve_nuclear_at_scale(problem, *warm, solution);
    } else if (problem.rows() <= kExactRows && nuclear.refine(problem, *warm)) {
      take(solution);
    }
    if (solution.status == MarginStatus::optimal || stopped) return;
  }
  if (!start_from_frobenius(problem, large ? std::max(tolerance, kStartTolerance) : tolerance, solution)) return;
  const auto keep_better = [&] {
    if (other.gap < solution.gap || std::isnan(solution.gap)) std::swap(solution, other);  // NaN: not feasible
  };
  if (large) {
    solve_nuclear_at_scale(problem, frobenius, solution);
    if (solution.status == MarginStatus::optimal) return;
  }
  if (!large || (!stopped && problem.rows() * problem.d() <= kExactNumbers)) {
    other = solution;
    nuclear.solve(problem, frobenius, tolerance, [&](const SolveProgress& progress) { return stop(progress); });
    take(solution);
    if (solution.status == MarginStatus::optimal) return;
    if (large) keep_better();
  }
  if (!stopped) polish_nuclear(problem, solution);
  if (solution.status == MarginStatus::optimal) return;
  other = solution;  // the Frobenius answer is feasible at least, and its gap is honest too
  balanced_factors(frobenius.W, other.K, other.Q);
  other.dual = frobenius.dual;
  other.method = "Frobenius answer";
  certifier.certify(problem, tolerance, other);
  keep_better();
}

/// The last resort of small problems: where rows nearly conflict or the optimum is degenerate, rounding keeps double
/// from the tolerance.
void MarginSolver::State::polish_nuclear(const MarginProblem& problem, MarginSolution& solution) {
  if (!WidePath::suits(problem) || !(solution.objective > 0) || !std::isfinite(solution.objective)) return;
  WidePath path;
  const bool settled = path.solve(problem, solution.objective, [&] { return stop({.iteration = asked}); });
  solution.iterations += path.iterations();
  if (!settled) return;
  other = solution;
  path.write(other.W, other.dual);
  balanced_factors(other.W, other.K, other.Q);
  other.method = "central path in 512 bits";
  certifier.certify(problem, tolerance, other);
  if (is_better(other, solution)) std::swap(solution, other);
}

void MarginSolver::State::solve_entrywise(const MarginProblem& problem, MarginSolution& solution) {
  if (!start_from_frobenius(problem, tolerance, solution)) return;
  const auto ask = [&](const SolveProgress& progress) { return stop(progress); };
  entrywise.solve(problem, settings->norm.power, frobenius, tolerance, ask);
  entrywise.write(solution.W, solution.dual);
  solution.iterations += entrywise.iterations();
  solution.method = entrywise.method();
  certifier.certify(problem, tolerance, solution);
}

MarginSolver::MarginSolver(Threads& threads) : state_(std::make_unique<State>(threads)) {}
MarginSolver::~MarginSolver() = default;

void MarginSolver::solve(const MarginProblem& problem, const SolveSettings& settings, MarginSolution& solution) {
  require_sensible(settings);
  State& state = *state_;
  state.settings = &settings;
  state.tolerance = settings.tolerance;
  state.start = std::chrono::steady_clock::now();
  state.asked = 0;
  state.stopped = false;
  state.held = false;
  solution.status = MarginStatus::stalled;
  solution.history.clear();
  solution.iterations = 0;
  const MarginSolution* warm = settings.warm_start;
  solution.warm_started =
      warm != nullptr && warm->status != MarginStatus::infeasible && warm->dual.size() == problem.rows();
  solution.norm = settings.norm;
  if (settings.norm.kind != NormKind::nuclear) solution.K.resize(0, 0), solution.Q.resize(0, 0);
  switch (settings.norm.kind) {
    case NormKind::frobenius:
      state.solve_frobenius(problem, solution);
      break;
    case NormKind::nuclear:
      state.solve_nuclear(problem, solution);
      break;
    case NormKind::entrywise:
      state.solve_entrywise(problem, solution);
      break;
  }
  if (solution.status == MarginStatus::optimal && !state.held && !state.holds(problem, solution)) withdraw(solution);
  if (solution.status == MarginStatus::stalled && state.stopped) solution.status = MarginStatus::limit;
  solution.history.push_back({solution.iterations, solution.objective, solution.dual_objective, state.seconds()});
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
  const Eigen::VectorXd sigma = singular_values(W);
  return (sigma.array() > 1e-10 * sigma(0)).count();
}

}  // namespace attsvm
