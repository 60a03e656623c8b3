#include "margin/pursuit.h"

#include <cmath>
#include <utility>

#include "margin/rows/wide_rows.h"

namespace attsvm::internal {
namespace {

constexpr double kCertainConflict = 1e14;    // Certifier::conflict_factor() from which no W is searched for
constexpr Index kMostProducts = 20'000'000;  // multiplications up to which verify checks rows that ask for 0

bool is_feasible(const MarginSolution& answer) { return !std::isnan(answer.gap); }

/// Whether a is the better answer: proven ones first, then feasible ones; then the gap decides, or else the bound.
bool is_better(const MarginSolution& a, const MarginSolution& b) {
  if (is_settled(a.status) != is_settled(b.status)) return is_settled(a.status);
  if (is_feasible(a) != is_feasible(b)) return is_feasible(a);
  return is_feasible(a) ? a.gap < b.gap : a.dual_objective > b.dual_objective;
}

/// Takes back `optimal`, because no W near this one is known to meet the rows.
void withdraw(MarginSolution& answer) {
  answer.status = MarginStatus::stalled;
  answer.gap = kNaN;
  answer.rank = {.rank = answer.K.cols(), .words = "the answer is not proven optimal"};
}

}  // namespace

bool StopRule::operator()(SolveProgress progress) {
  progress.iteration = asked_++;
  if (settings_.progress) progress.seconds = seconds();
  stopped_ = stopped_ || (settings_.iteration_limit > 0 && asked_ > settings_.iteration_limit) || limit_.over() ||
             (settings_.progress && settings_.progress(progress));
  if (shared_ != nullptr) {
    const auto first = [](std::string own, std::string_view /*next*/) { return own; };
    stopped_ = shared_->together(stopped_ ? "stop" : "", first, {}) == "stop";
  }
  return stopped_;
}

Pursuit::Pursuit(SolverMemory& solvers, const MarginProblem& on, const Norm& minimised, double wanted_gap,
                 const MarginSolution* warm_start, StopRule& stop_rule, MarginSolution& answer)
    : memory(solvers),
      problem(on),
      rows(on, solvers.share),
      norm(minimised),
      tolerance(wanted_gap),
      warm(warm_start),
      stop(stop_rule),
      best(answer) {}

void Pursuit::follow(std::span<const Method> methods) {
  for (const Method& method : methods) {
    if (settled) break;
    if ((!method.even_after_stop && stop.stopped()) || !method.suits(*this)) continue;
    if (rows.shared() && !method.shares) throw NeedsAllRows{};
    warm_used = has_start && memory.frobenius.warm_started;
    method.run(*this);
  }
  best.iterations = iterations;
}

MarginSolution& Pursuit::fresh() {
  candidate_ = has_answer ? &memory.candidate : &best;
  MarginSolution& candidate = *candidate_;
  candidate.norm = norm;
  candidate.history.clear();
  candidate.rank = {};
  candidate.unique.reset();
  if (!norm.is_nuclear()) candidate.K.resize(0, 0), candidate.Q.resize(0, 0);
  return candidate;
}

/// Whether a certified optimum stands. If every row has b > 0, scaling has made W meet the rows, and the gap is a
/// proof. Rows that ask for 0 are met only to rounding; unless they are clearly independent, verify has to find a W
/// nearby that meets them.
bool Pursuit::holds(const MarginSolution& candidate) {
  if (rows.all_positive() || problem.kind() == ProblemKind::finite ||
      problem.d() * (rows.rows() + 2 * rows.groups() * problem.dz()) > kMostProducts)
    return true;
  if (rows.shared()) throw NeedsAllRows{};
  return memory.certifier.is_near_homogeneous(problem, tolerance, candidate) ||
         verify(problem.task(), stored(problem, candidate, tolerance), {.tolerance = tolerance}).valid;
}

void Pursuit::judge(MarginSolution& candidate) {
  memory.certifier.certify(problem, tolerance, candidate);
  if (candidate.status == MarginStatus::optimal && !holds(candidate)) withdraw(candidate);
  if (candidate.status != MarginStatus::optimal) {
    candidate.unique.reset();
  } else if (norm.is_strictly_convex() || candidate.objective == 0) {
    candidate.unique = true;
  }
}

void Pursuit::keep(MarginSolution& candidate) {
  if (&candidate != &best) std::swap(best, candidate);
  has_answer = true;
  settled = best.status == MarginStatus::optimal;
}

void Pursuit::offer(std::string_view method, Index iterations_taken) {
  iterations += iterations_taken;
  MarginSolution& candidate = *candidate_;
  candidate.method = method;
  candidate.warm_started = warm_used;
  judge(candidate);
  if (!has_answer) return keep(candidate);
  if (candidate.status == MarginStatus::optimal) {
    if (!settled || is_better(candidate, best)) keep(candidate);
    return;
  }
  if (best.status == MarginStatus::infeasible) return;  // stays until an optimum is proven
  const bool smaller = is_feasible(candidate) && !(is_feasible(best) && best.objective <= candidate.objective);
  const bool stronger = candidate.dual_objective > best.dual_objective;
  if (!smaller && !stronger) return;
  MarginSolution mixed;  // W of one and the multipliers of the other may give a smaller gap
  if (smaller != stronger) {
    mixed = smaller ? candidate : best;
    mixed.dual = smaller ? best.dual : candidate.dual;
    judge(mixed);
  }
  if (is_better(candidate, best)) keep(candidate);
  if (smaller != stronger && is_better(mixed, best)) keep(mixed);
}

void Pursuit::offer_conflict(std::string_view method, Index iterations_taken) {
  MarginSolution& candidate = *candidate_;
  if (!memory.certifier.certify_conflict(problem, candidate)) return offer(method, iterations_taken);
  // If the certificate is not certain, the wide methods still search for a W where they can.
  const bool is_certain = memory.certifier.conflict_factor() >= kCertainConflict || !WideRows::suit(problem);
  iterations += iterations_taken;
  candidate.method = method;
  candidate.warm_started = warm_used;
  keep(candidate);
  settled = is_certain;
}

}  // namespace attsvm::internal
