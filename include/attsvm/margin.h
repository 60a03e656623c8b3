#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attsvm/graph.h"
#include "attsvm/norm.h"
#include "attsvm/task.h"
#include "attsvm/threads.h"
#include "attsvm/verify.h"

namespace attsvm {

/// Which rows a margin problem has.
enum class ProblemKind : std::uint8_t {
  attention,  ///< δ = x_keep − x_drop, ζ = z: Att-SVM, p-SVM, Gen-SVM and their relaxed forms
  value,      ///< δ = y_i v_keep, ζ = 1, W is (dv,1): v-SVM
  finite,     ///< δ as for attention, equations among kept tokens with given log-ratios: the finite part
  graph,      ///< δ = e_from − e_to, ζ = e_last, for the edges of priority graphs: the graph SVM
};

std::string_view name_of(ProblemKind kind);  ///< the name that files, JSON and messages use

/// The rows of one query that prefer one token: rows first_row … first_row + rows − 1 of the problem. Row k has δ_k =
/// x_keep − x_{drop(k)}, or sign·x_keep in a value problem, and ζ_k = z. The pointers are views of the task. In a graph
/// problem tokens are those of the vocabulary, the query is the last token, and a query has a group per preferred
/// token.
struct MarginGroup {
  Index query;      ///< the query
  const double* X;  ///< row-major tokens that the query sees, d numbers each
  Index tokens;     ///< how many they are
  const double* z;  ///< dz numbers
  Index keep;       ///< the row of X that the rows prefer: the smallest kept token
  double sign;      ///< the label in a value problem, else 1
  Index first_row;  ///< of the problem
  Index rows;       ///< how many
};

/// min ‖W‖ subject to δ_kᵀ W ζ_k ≥ b_k (or = b_k). The problem stores no δ: it computes them from the tokens of the
/// task, which it shares. Queries without rows (for example those that see one token) have no group.
class MarginProblem {
 public:
  /// One row per visible token but the smallest kept one: ≥ 1 for a dropped token, = 0 for a kept one. For the queries
  /// listed in `relax`, ≥ 1 becomes ≥ 0. InputError if the selection has another number of queries than the task, or
  /// keeps a token that its query does not see, or `relax` lists something that is not a query.
  static MarginProblem attention(const AttentionTask& task, Selection selection, std::span<const Index> relax = {});
  /// One row per query: y_i v_{iα}ᵀ w ≥ 1 for its selected token α. InputError if a query keeps several tokens.
  static MarginProblem value(const AttentionTask& task, Selection selection);
  /// Equations that give the kept tokens the observed attention ratios: (x_keep − x_t)ᵀ W z + b_keep − b_t =
  /// log_attention[i][keep] − log_attention[i][t], where b is the task's bias. `log_attention` is (q,T), as
  /// AttentionMap::log_weights. InputError if it is not.
  static MarginProblem finite_part(const AttentionTask& task, Selection selection, const RowMatrix& log_attention);
  /// For each graph, in order of (from, to): = 0 for the smallest token of a component and each other one of it, ≥ 1
  /// for every edge between components. `graphs` are the priority_graphs() of the task.
  static MarginProblem graph(const AttentionTask& task, std::span<const PriorityGraph> graphs);

  ProblemKind kind() const { return kind_; }                     ///< which rows it has
  const AttentionTask& task() const { return task_; }            ///< the task whose tokens make the rows
  const Selection& selection() const { return selection_; }      ///< the tokens that rows prefer; none in a graph
  const std::vector<bool>& relaxed() const { return relaxed_; }  ///< (q): whether the query was in `relax`

  Index d() const { return d_; }                                   ///< rows of W
  Index dz() const { return dz_; }                                 ///< columns of W
  Index rows() const { return static_cast<Index>(rhs_.size()); }   ///< how many
  std::span<const MarginGroup> groups() const { return groups_; }  ///< the rows of each query, in order

  /// The row of X that the row drops; −1 in a value problem.
  Index drop(Index row) const { return drop_[static_cast<std::size_t>(row)]; }
  /// drop() of the rows of a group, in order.
  std::span<const Index> drops(const MarginGroup& group) const {
    return std::span(drop_).subspan(static_cast<std::size_t>(group.first_row), static_cast<std::size_t>(group.rows));
  }
  /// The token that the rows of a group prefer: its index within the sequence, as selections and files have it. Where
  /// the query does not see the tokens before, X begins later.
  Index keep_token(const MarginGroup& group) const;
  /// The same of the token that a row drops; −1 in a value problem.
  Index drop_token(const MarginGroup& group, Index row) const;
  bool equal(Index row) const { return equal_[static_cast<std::size_t>(row)] != 0; }  ///< = b, else ≥ b
  double rhs(Index row) const { return rhs_[static_cast<std::size_t>(row)]; }         ///< b
  /// Every row is ≥ b with b > 0: if W makes all row values positive, a multiple of W is feasible.
  bool all_positive() const { return all_positive_; }

  /// Writes δ of a row of the group to `out`, which has room for d numbers. `row` counts from the first row of the
  /// problem.
  void delta(const MarginGroup& group, Index row, double* out) const;
  /// δ_kᵀ W ζ_k of every row k.
  Eigen::VectorXd values(const RowMatrix& W) const;
  /// A(λ) = Σ λ_k δ_k ζ_kᵀ, (d,dz).
  RowMatrix weigh(const Eigen::VectorXd& lambda) const;

 private:
  MarginProblem(const AttentionTask& task, Selection selection, ProblemKind kind);
  void add_graph(const PriorityGraph& graph);
  void add_row(Index drop, bool equal, double rhs);
  void begin_group(Index query, double sign);
  Index place_of(Index query, Index token) const;
  void end_group();

  AttentionTask task_;
  Selection selection_;
  ProblemKind kind_;
  std::vector<bool> relaxed_;
  Index d_, dz_;
  std::vector<MarginGroup> groups_;
  std::vector<Index> drop_;
  std::vector<std::uint8_t> equal_;
  std::vector<double> rhs_;
  bool all_positive_ = true;
};

/// How a solve ended, and what the arrays of the solution then hold.
enum class MarginStatus : std::uint8_t {
  optimal,     ///< W is feasible and proven optimal to the tolerance; `dual` is the proof
  infeasible,  ///< no W meets the rows (see kInfeasibleFactor): `dual` proves it, W is zero, objective and bound are
               ///< NaN
  limit,       ///< a limit that was set, or the callback, ended it; W and dual are the best so far, with their true gap
               ///< and violation
  stalled,     ///< the solver could not reach its tolerance; the arrays hold what they do for `limit`
};

std::string_view name_of(MarginStatus status);  ///< the name that files, JSON and messages use
/// Whether the problem is solved: an optimum or infeasibility is proven.
inline bool is_settled(MarginStatus status) {
  return status == MarginStatus::optimal || status == MarginStatus::infeasible;
}

/// The state of a solve, as the progress callback and MarginSolution::history get it.
struct SolveProgress {
  Index iteration = 0;        ///< steps of all methods so far
  double objective = 0;       ///< norm of the best feasible W so far; infinite while there is none
  double dual_objective = 0;  ///< proven lower bound so far
  double seconds = 0;         ///< since the start of the solve
};

/// What is proven about the rank of nuclear-norm optima. A(dual) has operator norm 1, and `rank` of its singular values
/// are 1 up to the gap. Every unit of nuclear norm that an optimum has outside those directions would cost it
/// 1 − next_singular_value.
struct RankCertificate {
  Index rank = 0;                  ///< columns of K and Q in the solution
  double next_singular_value = 0;  ///< upper bound on singular value number rank + 1 of A(dual); 0 if there is none
  double outside_mass = 0;  ///< for every optimum, the singular values beyond the first `rank` sum to at most this
  bool certified = false;   ///< every optimum has `rank` singular values of at least half of W's smallest, and
                            ///< outside_mass is at most 1e-6 of that; false: proven is only that W has at most
                            ///< this rank
  std::string_view words;   ///< why it is not certified; empty if it is
};

/// The answer to a margin problem.
struct MarginSolution {
  MarginStatus status = MarginStatus::limit;  ///< how the solve ended
  Norm norm;                                  ///< the norm that was minimised
  RowMatrix W;                                ///< (d,dz)
  RowMatrix K;                                ///< nuclear: (d,r), r the rank; else empty
  RowMatrix Q;                                ///< nuclear: (dz,r) with W = K Qᵀ and KᵀK = QᵀQ; else empty
  /// One multiplier per row, scaled so that A(dual) has dual norm 1; infeasible: Σ rhs·dual = 1; soft margin: W =
  /// A(dual), and those of the rows ≥ 1 of a query add up to at most its penalty.
  Eigen::VectorXd dual;
  Eigen::VectorXd slack;          ///< δᵀWζ − rhs of each row
  double objective = 0;           ///< ‖W‖; with a soft margin ½‖W‖² + Σ penalty·xi
  double dual_objective = 0;      ///< proven lower bound on the objective of every feasible W
  std::vector<double> penalty{};  ///< soft margin: C of each query; else empty
  Eigen::VectorXd xi{};           ///< soft margin: by how much the rows ≥ 1 of each query may be missed; else empty
  double gap = 0;        ///< max(0, objective − dual_objective)/objective; 0 if both are 0; NaN if W is not feasible
  double violation = 0;  ///< largest violation of a row by W
  double residual = 0;   ///< infeasible: ‖A(dual)‖_F, so that a feasible W would have ‖W‖_F ≥ 1/residual
  Index support = 0;     ///< how many rows are met with equality, to kSupportTolerance
  RankCertificate rank;  ///< nuclear norm only, else not filled in
  /// Whether no other W is optimal: true for every optimum in a norm of power 1 < P < ∞. In the others it is read off
  /// the rows and values that the multipliers hold; false: W is one of many. Empty: not settled.
  std::optional<bool> unique{};
  Index iterations = 0;                ///< steps of all methods
  bool warm_started = false;           ///< a warm start was given and used
  std::string_view method;             ///< name of the method that found the answer
  std::vector<SolveProgress> history;  ///< the last entry is the final state
};

/// A row counts as met with equality if its slack is at most this times max(1, |rhs|).
inline constexpr double kSupportTolerance = 1e-6;

/// How to solve a margin problem.
struct SolveSettings {
  Norm norm{};  ///< to minimise
  /// C > 0 of a soft margin, one for all queries or one per query; empty: none. Then ½‖W‖_F² + Σ_i C_i ξ_i is
  /// minimised, and the rows ≥ 1 of query i are ≥ 1 − ξ_i, ξ_i ≥ 0. Rows = and ≥ 0 stay as they are. Frobenius norm
  /// only.
  std::vector<double> soft{};
  double tolerance = 1e-8;  ///< of the relative gap; Frobenius problems up to 1,500 rows are solved to rounding anyway
  double time_limit = 0;    ///< seconds; 0: none
  Index iteration_limit = 0;                             ///< counted over all methods that the solve tries; 0: none
  std::function<bool(const SolveProgress&)> progress{};  ///< called often; return true to stop
};

/// Solves one margin problem. `warm_start` is null or the solution of the same or a similar problem, in any norm; it is
/// ignored if it is infeasible or has another number of rows, and where the margin is soft. InputError if a setting is
/// out of range.
MarginSolution solve(const MarginProblem& problem, const SolveSettings& settings, Threads& threads,
                     const MarginSolution* warm_start = nullptr);

/// Solves many small problems, one per thread at a time, and returns one answer per problem: the same as from solving
/// them one by one. Where the device of the threads is a GPU (Device::automatic: for batches that take a core about a
/// second), it solves the problems that its kernel takes, those in Frobenius norm with all rows ≥ 1, at most 128 of
/// them: to a gap of at most 1e-12, proven by the CPU from the rows, but with other last bits than on the CPU. Time and
/// iteration limits hold for each problem; the progress callback is not called. InputError if a setting is out of
/// range.
std::vector<MarginSolution> solve_many(std::span<const MarginProblem> problems, const SolveSettings& settings,
                                       Threads& threads);

/// The same functions for many calls: a solver keeps its memory from one call to the next. `threads` must outlive it.
class MarginSolver {
 public:
  explicit MarginSolver(Threads& threads);  ///< `threads` do the work
  ~MarginSolver();

  /// As attsvm::solve. The answer stays in the solver until the next call. It may serve as the warm start of that call.
  const MarginSolution& solve(const MarginProblem& problem, const SolveSettings& settings,
                              const MarginSolution* warm_start = nullptr);
  /// As attsvm::solve_many. The answers stay in the solver until the next call of solve_many.
  std::span<const MarginSolution> solve_many(std::span<const MarginProblem> problems, const SolveSettings& settings);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The numerical rank of W: how many singular values exceed 1e-10 of the largest.
Index numerical_rank(const RowMatrix& W);

/// A certificate of infeasibility in words: one line per row with a nonzero multiplier, largest first. After `most`
/// rows a last line tells how many there are.
std::vector<std::string> describe_conflict(const MarginProblem& problem, const Eigen::VectorXd& dual, std::size_t most);

/// A solver's answer in the form that solution files hold and verify() judges. `tolerance` is the one it was solved to.
StoredSolution stored(const MarginProblem& problem, const MarginSolution& solution, double tolerance);

/// A stored answer as a warm start: its status, norm, W, K, Q and multipliers. InputError if its norm cannot be parsed.
MarginSolution warm_start_from(const StoredSolution& solution);

}  // namespace attsvm
