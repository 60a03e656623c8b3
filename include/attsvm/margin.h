#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/margin_problem.h"
#include "attsvm/norm.h"
#include "attsvm/threads.h"

namespace attsvm {

/// What a solve ended with, and what the arrays of the solution then hold.
enum class MarginStatus : std::uint8_t {
  optimal,     ///< W is feasible and proven optimal to the tolerance; dual is the proof
  infeasible,  ///< no W meets the rows (see kInfeasibleFactor); dual proves it, W is zero, objective and bound are NaN
  limit,       ///< a limit that was set, or the callback, ended it; W and dual are the best so far, gap and violation
               ///< are honest
  stalled,     ///< the solver could not reach its tolerance; the arrays hold what they do for `limit`
};

std::string_view name_of(MarginStatus status);
/// Whether the problem is solved, one way or the other.
inline bool is_settled(MarginStatus status) {
  return status == MarginStatus::optimal || status == MarginStatus::infeasible;
}

/// How a solve stands: what the callback sees, and what the history keeps.
struct SolveProgress {
  Index iteration = 0;
  double objective = 0;       ///< of the best feasible W so far; infinite while there is none
  double dual_objective = 0;  ///< proven lower bound so far
  double seconds = 0;
};

/// What is proven about the rank of nuclear-norm optima. A(dual), of operator norm 1, has r singular values at 1 (to
/// the gap); what any optimum has beyond r directions costs it 1 − next_singular_value per unit of nuclear norm.
struct RankCertificate {
  Index rank = 0;                  ///< columns of K and Q
  double next_singular_value = 0;  ///< a bound on the (rank+1)-th singular value of A(dual); 0 when there is none
  double outside_mass = 0;         ///< of every optimum the singular values beyond `rank` sum to at most this
  bool certified = false;          ///< every optimum has `rank` singular values of at least half of W's smallest, and
                                   ///< outside_mass is at most 1e-6 of that; else only: W has at most this rank
  std::string_view words;          ///< why not certified; empty when it is
};

struct MarginSolution {
  MarginStatus status = MarginStatus::limit;
  Norm norm;              ///< the norm minimised
  RowMatrix W;            ///< (d,dz)
  RowMatrix K, Q;         ///< nuclear: (d,r) and (dz,r) with W = K Qᵀ, KᵀK = QᵀQ, r the rank; else empty
  Eigen::VectorXd dual;   ///< a multiplier a row, scaled so that A(dual) has dual norm 1; infeasible: Σ rhs·dual = 1
  Eigen::VectorXd slack;  ///< δᵀWζ − rhs
  double objective = 0, dual_objective = 0;  ///< ‖W‖ in the norm, and a proven lower bound on it
  double gap = 0;  ///< max(0, objective − dual_objective)/objective; 0 when both are 0; NaN if W is not feasible
  double violation = 0;  ///< largest violation of a row by W
  double residual = 0;   ///< infeasible: ‖A(dual)‖_F; no feasible W has a norm below 1/residual
  Index support = 0;     ///< rows met with equality, to kSupportTolerance
  RankCertificate rank;  ///< of a nuclear optimum; else not filled in
  Index iterations = 0;
  bool warm_started = false;  ///< a warm start was given and used
  std::string_view method;    ///< which solver did it
  std::vector<SolveProgress> history;
};

/// A row counts as met with equality when its slack is at most this times its size max(1, |rhs|).
inline constexpr double kSupportTolerance = 1e-6;

struct SolveSettings {
  Norm norm{};                ///< to minimise
  double tolerance = 1e-8;    ///< on the relative gap; problems of at most 1,500 rows are solved to rounding anyway
  double time_limit = 0;      ///< seconds; 0: none
  Index iteration_limit = 0;  ///< 0: none
  const MarginSolution* warm_start =
      nullptr;  ///< of the same or a similar problem with as many rows, in any norm; else not used
  std::function<bool(const SolveProgress&)> progress{};  ///< true stops the solve
};

/// Solves margin problems one after another, keeping its memory.
class MarginSolver {
 public:
  explicit MarginSolver(Threads& threads);
  ~MarginSolver();
  /// Writes the answer to `solution`, reusing its memory. InputError if the settings make no sense.
  void solve(const MarginProblem& problem, const SolveSettings& settings, MarginSolution& solution);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

MarginSolution solve(const MarginProblem& problem, const SolveSettings& settings, Threads& threads);

/// Solves many small problems, one a thread at a time; the answers are those of solving them one by one. `solutions`
/// is resized, and its memory used again. The progress callback is not called.
void solve_many(std::span<const MarginProblem> problems, const SolveSettings& settings, Threads& threads,
                std::vector<MarginSolution>& solutions);

/// Rank of W: singular values above 1e-10 of the largest.
Index numerical_rank(const RowMatrix& W);

/// A certificate in words, one line a row, largest weight first, at most `most` of them.
std::vector<std::string> describe_conflict(const MarginProblem& problem, const Eigen::VectorXd& dual, std::size_t most);

}  // namespace attsvm
