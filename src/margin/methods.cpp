#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "margin/conflict/search.h"
#include "margin/frobenius/interior_point.h"
#include "margin/frobenius/proximal.h"
#include "margin/frobenius/wide_active_set.h"
#include "margin/nuclear/rounds.h"
#include "margin/nuclear/wide_path.h"
#include "margin/pursuit.h"
#include "margin/rows/row_spread.h"
#include "margin/rows/tolerances.h"
#include "margin/streaming/nuclear_working_set.h"
#include "margin/streaming/working_set.h"

// The methods for each norm; the tables at the end give the order in which they are tried.

namespace attsvm::internal {
namespace {

// Set by hand unless a comment names a reason or a measurement.
constexpr Index kExactRows = 1500;     // up to this the exact solver is also the fastest
constexpr Index kNuclearRows = 600;    // above this a working set is faster than factorising all active rows
constexpr Index kMostUnknowns = 2048;  // for the interior point method, which factorises a matrix of this size
constexpr Index kRowsPerUnknown = 8;  // far more rows stall the working set (docs/tried.md); where that begins, by hand
constexpr Index kTriedPerUnknown = 30;  // rows per unknown up to which it is tried all the same
// Steps of the working set per unknown that it is tried for. Measured from (100,32,12) to (3000,16,40): this many take
// about half the time of the interior point method, and most of the problems on which it is faster need fewer.
constexpr double kTriedSteps = 1.0 / 12;
constexpr double kStartTolerance = 1e-2;     // for the Frobenius answer from which a large nuclear solve starts
constexpr Index kLastRows = 10'000;          // rows up to which the exact solver is a last resort: 0.8 GB
constexpr Index kExactNumbers = 25'000'000;  // rows · d up to which the exact solver may copy all rows as a last resort
// Measured: rows of random tokens have a spread above 0.7 and take the working set a twentieth of the time, heads have
// one of at most 0.11 and take it up to forty times as long, or stall it.
constexpr double kEvenSpread = 0.25;
// Added to right-hand sides, relative to ‖δ‖ ‖W‖ ‖ζ‖, so that W meets the rows after rounding.
constexpr double kLift = 2 * kMeet, kWideLift = 0.3 * kEpsilon;

bool always(const Pursuit& /*pursuit*/) { return true; }

/// The multipliers of the warm start, for a method that begins with them; null if there is none.
const Eigen::VectorXd* warm_dual(Pursuit& p) {
  p.warm_used = p.warm_used || p.warm != nullptr;
  return p.warm != nullptr ? &p.warm->dual : nullptr;
}

// Frobenius norm

bool is_small(const Pursuit& p) { return p.rows.rows() <= kExactRows || p.problem.kind() == ProblemKind::value; }

bool is_large(const Pursuit& p) { return !is_small(p); }

/// Far more rows than unknowns. Methods on the dual face fail there, because the support is as large as the space.
bool has_many_rows(const Pursuit& p) {
  const Index unknowns = p.problem.d() * p.problem.dz();
  return !is_small(p) && unknowns <= kMostUnknowns && p.rows.rows() >= kRowsPerUnknown * unknowns &&
         !p.rows.has_equal();
}

/// Rows in few directions, as those of real heads. Conjugate gradients fail on them, but few of them support the
/// answer, so that their equations can be factorised.
bool is_lopsided(const Pursuit& p) {
  return is_large(p) && p.rows.all_positive() && row_spread(p.problem, p.rows) < kEvenSpread;
}

/// The working set or interior point stalled, and a face that can be factorised may still be small.
bool may_have_missed(const Pursuit& p) {
  return is_large(p) && p.rows.all_positive() && p.has_answer && !is_lopsided(p);
}

/// Far more rows than unknowns, but not so many that trying the working set first is not worth it.
bool may_suit_working_set(const Pursuit& p) {
  return has_many_rows(p) && p.rows.rows() < kTriedPerUnknown * p.problem.d() * p.problem.dz();
}

bool suits_working_set(const Pursuit& p) { return is_large(p) && !has_many_rows(p); }

bool fits_into_memory(const Pursuit& p) {
  return is_large(p) && p.rows.rows() <= kLastRows && p.rows.rows() * p.problem.d() <= kExactNumbers;
}

bool is_open_by_rounding(const Pursuit& p) { return p.reached && p.best.dual_objective > 0; }

bool suits_wide(const Pursuit& p) { return !p.rows.shared() && WideRows::suit(p.problem); }

bool is_open_by_rounding_in_wide(const Pursuit& p) { return suits_wide(p) && is_open_by_rounding(p); }

void take_support(Pursuit& p, const Eigen::VectorXd& dual) {
  for (Index k = 0; k < p.problem.rows(); ++k) {
    if (dual(k) != 0) p.memory.support.push(k);
  }
}

/// Offers the candidate of an active-set method.
void offer_outcome(Pursuit& p, ActiveSetOutcome outcome, std::string_view method, Index iterations) {
  p.reached = outcome == ActiveSetOutcome::optimal;
  if (outcome == ActiveSetOutcome::infeasible) {
    p.offer_conflict(method, iterations);
  } else {
    p.offer(method, iterations);
  }
}

void run_active_set(Pursuit& p, double lift) {
  ExactSolver& solver = p.memory.exact;
  MarginSolution& candidate = p.fresh();
  const ActiveSetOutcome outcome = solver.solve(p.problem, p.memory.support, std::ref(p.stop), lift);
  solver.write(candidate.W, candidate.dual);
  offer_outcome(p, outcome, solver.was_robust() ? "dual active set" : "block pivoting", solver.iterations());
}

void active_set(Pursuit& p) {
  p.memory.support.clear();
  if (const Eigen::VectorXd* dual = warm_dual(p)) take_support(p, *dual);
  run_active_set(p, 0);
}

/// After rounding, W can miss rows, and if ‖W‖ is huge, scaling it up costs more than the tolerance. Raising the
/// right-hand sides by the rounding error gives a W that meets the original rows.
void lifted_active_set(Pursuit& p) {
  p.memory.support.clear();
  p.warm_used = p.best.warm_started;
  take_support(p, p.best.dual);
  run_active_set(p, kLift * p.best.dual_objective);
}

/// A last resort for small problems, if double precision cannot tell which rows depend on each other or conflict.
void run_wide_active_set(Pursuit& p, double lift) {
  WideActiveSet solver;
  p.warm_used = p.best.warm_started;
  const ActiveSetOutcome outcome = solver.solve(p.problem, p.best.dual, std::ref(p.stop), lift);
  if (outcome == ActiveSetOutcome::stopped) {  // an unfinished answer is no better than that in double
    p.reached = false;
    p.iterations += solver.iterations();
    return;
  }
  MarginSolution& candidate = p.fresh();
  solver.write(candidate.W, candidate.dual);
  offer_outcome(p, outcome, "dual active set in 512 bits", solver.iterations());
}

void wide_active_set(Pursuit& p) { run_wide_active_set(p, 0); }

void lifted_wide_active_set(Pursuit& p) { run_wide_active_set(p, kWideLift * p.best.dual_objective); }

template <class Solver>
void offer_from(Pursuit& p, const Solver& solver, std::string_view method) {
  MarginSolution& candidate = p.fresh();
  solver.write(candidate.W, candidate.dual);
  candidate.history = solver.history();
  p.offer(method, solver.iterations());
}

void interior_point(Pursuit& p) {
  InteriorPointSolver solver(p.problem, p.memory.threads);
  solver.solve(p.tolerance, std::ref(p.stop));
  offer_from(p, solver, "interior point");
}

void proximal_steps(Pursuit& p) {
  ProximalSolver solver(p.problem, p.memory.threads);
  solver.solve(p.tolerance, warm_dual(p), std::ref(p.stop));
  offer_from(p, solver, "proximal Newton");
}

void run_working_set(Pursuit& p, const std::function<bool(const SolveProgress&)>& stop) {
  WorkingSetSolver solver(p.problem, p.memory.threads, p.memory.share);
  solver.solve(p.tolerance, warm_dual(p), stop);
  offer_from(p, solver, "working set");
}

void working_set(Pursuit& p) { run_working_set(p, std::ref(p.stop)); }

/// Far from infeasibility it is up to ten times as fast as the interior point method, near it it stalls. A count of
/// steps ends it, and not the clock, so that the answer has the same bytes everywhere; half of them if no W meets the
/// rows by then. They count against an iteration limit, as those of all methods.
void brief_working_set(Pursuit& p) {
  const auto steps = static_cast<Index>(kTriedSteps * static_cast<double>(p.problem.d() * p.problem.dz()));
  Index step = 0;
  run_working_set(p, [&](const SolveProgress& at) {
    return p.stop(at) || ++step > (std::isfinite(at.objective) ? steps : steps / 2);
  });
}

void conflict_search(Pursuit& p) {
  ConflictSearch search = search_conflict(p.problem, p.memory.threads, std::ref(p.stop));
  p.iterations += search.iterations;
  if (search.outcome != ConflictSearch::Outcome::conflict) return;
  p.fresh().dual = std::move(search.lambda);
  p.offer_conflict("conflict search", 0);
}

// Other norms

/// If W is a vector, the Frobenius answer is also the nuclear one, and no working set is needed.
bool suits_nuclear_working_set(const Pursuit& p) {
  return p.rows.rows() > kNuclearRows && p.problem.kind() != ProblemKind::value && p.problem.d() > 1 &&
         p.problem.dz() > 1 && p.rows.groups() > 1;
}

bool suits_nuclear_solver(const Pursuit& p) {
  return !suits_nuclear_working_set(p) || p.rows.rows() * p.problem.d() <= kExactNumbers;
}

/// The working set stalls on most such problems. Where it does not, the other way takes up to twice its time.
bool suits_nuclear_solver_alone(const Pursuit& p) {
  return suits_nuclear_working_set(p) && suits_nuclear_solver(p) && is_lopsided(p);
}

/// Rows as above, but too many of them to copy.
bool needs_nuclear_rounds(const Pursuit& p) {
  return suits_nuclear_working_set(p) && !suits_nuclear_solver(p) && is_lopsided(p);
}

bool is_left_to_nuclear_solver(const Pursuit& p) { return suits_nuclear_solver(p) && !suits_nuclear_solver_alone(p); }

bool suits_wide_path(const Pursuit& p) {
  return !p.rows.shared() && WidePath::suits(p.problem) && p.best.objective > 0 && std::isfinite(p.best.objective);
}

bool has_nuclear_start(const Pursuit& p) {
  return p.warm != nullptr && p.warm->K.cols() > 0 && p.warm->W.rows() == p.problem.d() &&
         p.warm->W.cols() == p.problem.dz();
}

/// The Frobenius solver finds conflicts, which do not depend on the norm, and the starting point for other norms.
void frobenius_start(Pursuit& p) {
  const bool rough = p.norm.is_nuclear() && suits_nuclear_working_set(p);
  Pursuit start(p.memory, p.problem, Norm::frobenius(), rough ? std::max(p.tolerance, kStartTolerance) : p.tolerance,
                p.warm, p.stop, p.memory.frobenius);
  start.follow(methods_for(Norm::frobenius()));
  p.has_start = start.has_answer;
  p.iterations += start.iterations;
  if (p.memory.frobenius.status != MarginStatus::infeasible) return;
  p.best = p.memory.frobenius;
  p.best.norm = p.norm;
  p.settled = p.has_answer = true;
  if (!p.norm.is_nuclear()) return;
  p.best.K.resize(p.problem.d(), 0);
  p.best.Q.resize(p.problem.dz(), 0);
  p.best.rank = {.words = "the rows conflict"};
}

void offer_nuclear(Pursuit& p, std::string_view method) {
  MarginSolution& candidate = p.fresh();
  p.memory.nuclear.write(candidate.K, candidate.Q, candidate.dual);
  p.offer(method, p.memory.nuclear.iterations());
}

void run_nuclear_working_set(Pursuit& p, const MarginSolution& first) {
  const double before = p.stop.seconds();
  NuclearWorkingSet solver(p.problem, p.memory.threads, p.memory.share);
  solver.solve(p.tolerance, first.W, first.dual, std::ref(p.stop));
  MarginSolution& candidate = p.fresh();
  solver.write(candidate.K, candidate.Q, candidate.dual);
  candidate.history = solver.history();
  for (SolveProgress& each : candidate.history) each.seconds += before;
  p.offer("nuclear working set", solver.iterations());
  if (!p.settled || p.rows.rows() > kExactRows || p.stop.stopped()) return;
  if (p.rows.shared()) throw NeedsAllRows{};
  const std::vector<SolveProgress> history = p.best.history;
  if (!p.memory.nuclear.refine(p.problem, p.best)) return;  // to rounding, because few rows make it cheap
  offer_nuclear(p, "nuclear working set, Newton on the face");
  p.best.history = history;
}

void nuclear_working_set(Pursuit& p) { run_nuclear_working_set(p, p.memory.frobenius); }

void nuclear_warm_start(Pursuit& p) {
  p.warm_used = true;
  if (suits_nuclear_working_set(p)) {
    MarginSolution& candidate = p.fresh();
    candidate.K = p.warm->K;
    candidate.Q = p.warm->Q;
    candidate.dual = p.warm->dual;
    p.offer("warm start", 0);
    if (!p.settled) run_nuclear_working_set(p, *p.warm);
  } else if (p.problem.rows() <= kExactRows && p.memory.nuclear.refine(p.problem, *p.warm)) {
    offer_nuclear(p, p.memory.nuclear.method());
  }
}

void nuclear_solver(Pursuit& p) {
  p.memory.nuclear.solve(p.problem, p.memory.frobenius, p.tolerance, std::ref(p.stop));
  offer_nuclear(p, p.memory.nuclear.method());
}

void nuclear_rounds(Pursuit& p) {
  const Index iterations = solve_in_rounds(p.memory.nuclear, p.problem, p.memory.frobenius, p.tolerance,
                                           kExactNumbers / p.problem.d(), p.memory.threads, std::ref(p.stop));
  MarginSolution& candidate = p.fresh();
  p.memory.nuclear.write(candidate.K, candidate.Q, candidate.dual);
  p.offer(p.memory.nuclear.method(), iterations);
}

/// A last resort for small problems that nearly conflict or have a degenerate optimum, on which rounding keeps double
/// precision from reaching the tolerance.
void wide_path(Pursuit& p) {
  WidePath path;
  if (!path.solve(p.problem, p.best.objective, std::ref(p.stop))) {
    p.iterations += path.iterations();
    return;
  }
  MarginSolution& candidate = p.fresh();
  path.write(candidate.W, candidate.dual);
  balanced_factors(candidate.W, candidate.K, candidate.Q);
  p.offer("central path in 512 bits", path.iterations());
}

/// False if a warm start was stopped, and offered what it had.
bool has_frobenius_answer(const Pursuit& p) { return p.has_start; }

/// If all else fails: the Frobenius answer is feasible, and is certified with its gap in the norm in question.
void frobenius_answer(Pursuit& p) {
  MarginSolution& candidate = p.fresh();
  candidate.W = p.memory.frobenius.W;
  if (p.norm.is_nuclear()) balanced_factors(candidate.W, candidate.K, candidate.Q);
  candidate.dual = p.memory.frobenius.dual;
  p.offer("Frobenius answer", 0);
}

void power_path(Pursuit& p) {
  PowerSolver& solver = p.memory.power;
  solver.solve(p.problem, p.norm, p.memory.frobenius, p.tolerance, std::ref(p.stop));
  MarginSolution& candidate = p.fresh();
  solver.write(candidate.W, candidate.dual);
  p.offer(solver.method(), solver.iterations());
}

void extreme_path(Pursuit& p) {
  ExtremeSolver& solver = p.memory.extreme;
  solver.solve(p.problem, p.norm, p.memory.frobenius, p.tolerance, std::ref(p.stop));
  MarginSolution& candidate = p.fresh();
  solver.write(candidate.W, candidate.dual);
  candidate.unique = solver.unique();
  p.offer(solver.method(), solver.iterations());
}

constexpr std::array kFrobenius{
    Pursuit::Method{is_small, active_set},
    Pursuit::Method{is_lopsided, proximal_steps},
    Pursuit::Method{may_suit_working_set, brief_working_set},
    Pursuit::Method{has_many_rows, interior_point},
    Pursuit::Method{.suits = suits_working_set, .run = working_set, .shares = true},
    Pursuit::Method{is_large, conflict_search},
    Pursuit::Method{may_have_missed, proximal_steps},
    Pursuit::Method{fits_into_memory, active_set},
    Pursuit::Method{is_open_by_rounding, lifted_active_set},
    Pursuit::Method{suits_wide, wide_active_set},
    Pursuit::Method{is_open_by_rounding_in_wide, lifted_wide_active_set},
};

constexpr std::array kNuclear{
    Pursuit::Method{has_nuclear_start, nuclear_warm_start},
    Pursuit::Method{.suits = always, .run = frobenius_start, .shares = true},
    Pursuit::Method{suits_nuclear_solver_alone, nuclear_solver},
    Pursuit::Method{needs_nuclear_rounds, nuclear_rounds},
    Pursuit::Method{.suits = suits_nuclear_working_set, .run = nuclear_working_set, .shares = true},
    Pursuit::Method{is_left_to_nuclear_solver, nuclear_solver},
    Pursuit::Method{suits_wide_path, wide_path},
    Pursuit::Method{.suits = has_frobenius_answer, .run = frobenius_answer, .even_after_stop = true, .shares = true},
};

constexpr std::array kPower{
    Pursuit::Method{always, frobenius_start},
    Pursuit::Method{always, power_path, true},
    Pursuit::Method{has_frobenius_answer, frobenius_answer, true},
};

constexpr std::array kExtreme{
    Pursuit::Method{always, frobenius_start},
    Pursuit::Method{always, extreme_path, true},
    Pursuit::Method{has_frobenius_answer, frobenius_answer, true},
};

}  // namespace

std::span<const Pursuit::Method> methods_for(const Norm& norm) {
  if (norm.is_frobenius()) return kFrobenius;
  if (norm.is_nuclear()) return kNuclear;
  return norm.is_strictly_convex() ? std::span<const Pursuit::Method>(kPower) : kExtreme;
}

}  // namespace attsvm::internal
