#pragma once

#include <span>

#include "attsvm/margin.h"
#include "base/limits.h"
#include "base/time_limit.h"
#include "margin/certify/certificate.h"
#include "margin/frobenius/exact_solver.h"
#include "margin/nuclear/solver.h"
#include "margin/power/extreme_solver.h"
#include "margin/power/solver.h"

namespace attsvm::internal {

/// Solvers and solutions whose memory one solve leaves for the next.
struct SolverMemory {
  /// `shared` as in RowSums: for solves of one problem.
  explicit SolverMemory(Threads& pool, const SharedRows* shared = nullptr)
      : threads(pool), share(shared), certifier(pool, shared) {}

  Threads& threads;
  const SharedRows* const share;
  Certifier certifier;
  ExactSolver exact;
  NuclearSolver nuclear;
  PowerSolver power;
  ExtremeSolver extreme;
  IndexList support;
  MarginSolution candidate, frobenius;
};

/// Decides when a solve has to end: by its limits, and by the user's callback.
class StopRule {
 public:
  /// `shared` as in RowSums: the first process decides for all.
  explicit StopRule(const SolveSettings& settings, const SharedRows* shared = nullptr)
      : settings_(settings), shared_(shared), limit_(settings.time_limit) {}

  /// Methods ask this once per iteration; once true, it stays true. The rule itself counts the iterations of all
  /// methods and the seconds. It reads the clock only if someone wants to know, because that takes a tenth of a small
  /// solve.
  bool operator()(SolveProgress progress);
  bool operator()() { return (*this)({.objective = kInfinity}); }
  bool stopped() const { return stopped_; }
  double seconds() const { return limit_.seconds(); }

 private:
  const SolveSettings& settings_;
  const SharedRows* shared_;
  TimeLimit limit_;
  Index asked_ = 0;
  bool stopped_ = false;
};

/// Solves one problem. Tries methods in turn; each offers candidates (W or K and Q, and λ), which the pursuit
/// certifies, and it keeps the best. Ends when a candidate is proven, or after the last method.
class Pursuit {
 public:
  struct Method {
    bool (*suits)(const Pursuit& pursuit);
    void (*run)(Pursuit& pursuit);
    bool even_after_stop = false;  ///< runs even after the solve was stopped, to finish an answer
    bool shares = false;           ///< also runs where processes share the rows; others throw NeedsAllRows there
  };

  /// `warm_start`: an answer to start from, or null. `answer` receives the answer.
  Pursuit(SolverMemory& solvers, const MarginProblem& on, const Norm& minimised, double wanted_gap,
          const MarginSolution* warm_start, StopRule& stop_rule, MarginSolution& answer);

  void follow(std::span<const Method> methods);

  /// A candidate without contents, to be filled in and offered.
  MarginSolution& fresh();
  /// Certifies the candidate: W or K and Q, and λ, up to a positive factor.
  void offer(std::string_view method, Index iterations);
  /// Certifies λ of the candidate, up to a positive factor, as a proof of infeasibility; if it is none, offers it for
  /// the bound it proves.
  void offer_conflict(std::string_view method, Index iterations);

  SolverMemory& memory;
  const MarginProblem& problem;
  const RowSums rows;
  const Norm norm;
  const double tolerance;
  const MarginSolution* const warm;
  StopRule& stop;
  MarginSolution& best;
  Index iterations = 0;
  bool settled = false;     ///< an optimum or infeasibility is proven
  bool reached = false;     ///< an active-set method ended with an optimum, so only rounding can prevent a proof
  bool has_answer = false;  ///< `best` holds an answer
  bool has_start = false;   ///< memory.frobenius holds the Frobenius answer of this problem
  bool warm_used = false;   ///< the method that runs began with `warm`, or with an answer that did

 private:
  void judge(MarginSolution& candidate);
  void keep(MarginSolution& candidate);
  bool holds(const MarginSolution& candidate);

  MarginSolution* candidate_ = nullptr;  // best itself as long as that is empty, so that its memory is used again
};

/// The methods for a problem in this norm, in the order in which they are tried.
std::span<const Pursuit::Method> methods_for(const Norm& norm);

}  // namespace attsvm::internal
