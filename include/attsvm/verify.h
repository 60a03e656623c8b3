#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attsvm/norm.h"
#include "attsvm/task.h"

namespace attsvm {

/// A solution as files hold it: the claims of a solver, which verify() checks. docs/formats.md describes each array.
/// Rows are those of a MarginProblem, r is the rank. norm, problem and status are text, because a file may hold words
/// that mean nothing, and verify() names them.
struct StoredSolution {
  std::string norm = "fro";      ///< Norm::name()
  std::string problem = "att";   ///< name_of(ProblemKind)
  std::string status;            ///< name_of(MarginStatus)
  RowMatrix W;                   ///< (d,dz)
  RowMatrix K;                   ///< (d,r); nuclear norm only
  RowMatrix Q;                   ///< (dz,r), with W = K Qᵀ; nuclear norm only
  bool has_factors = false;      ///< K and Q are given
  std::vector<Index> row_query;  ///< of each row: the query; in a graph problem the last token
  std::vector<Index> row_keep;   ///< of each row: the kept token
  std::vector<Index> row_drop;   ///< of each row: the dropped token
  std::vector<bool> row_equal;   ///< of each row: = rhs, else ≥ rhs
  std::vector<double> rhs;       ///< of each row: b
  std::vector<double> slack;     ///< as in MarginSolution
  std::vector<double> dual;      ///< as in MarginSolution
  double tolerance = 0;          ///< as in SolveSettings
  double objective = 0;          ///< as in MarginSolution
  double dual_objective = 0;     ///< as in MarginSolution
  Array select;                  ///< (q,longest) bool: the tokens that each query keeps; not in a graph problem
  std::vector<bool> relax;       ///< (q): the queries whose ≥ 1 is ≥ 0; empty in a graph problem
  std::vector<double> penalty;   ///< (q), as in MarginSolution; soft margin only, else empty
  std::vector<double> xi;        ///< (q), as in MarginSolution; soft margin only, else empty
  bool w_only = false;           ///< another program's answer: W is given and nothing else

  bool is_soft() const { return !penalty.empty() || !xi.empty(); }  ///< the rows ≥ 1 may be missed at a price
};

/// The solution, and if it has W alone (w_only), with what verify() judges it against: the task's own selection, else
/// the optimal tokens, and no relaxed query; for a next-token task, its graphs. InputError if another task has neither
/// selection nor head.
StoredSolution completed(const AttentionTask& task, StoredSolution solution);

/// Multipliers λ count as a proof of infeasibility if they prove that no W of norm up to this times ω meets the rows. ω
/// is the largest b/(‖δ‖ ‖ζ‖) among the rows with b > 0 and λ ≠ 0: the norm that a W needs to meet the hardest of these
/// rows alone.
inline constexpr double kInfeasibleFactor = 1e12;

/// How strictly verify() judges.
struct VerifySettings {
  double tolerance = 1e-8;  ///< largest relative gap of an optimum; used instead of the tolerance in the solution
};

/// What verify() has proven. Objective, gap, violation, scaling and residual are upper ends of enclosures, bounds are
/// lower ends, all rounded outward to doubles. Numbers that the claim does not have are NaN: a certificate of
/// infeasibility has no W, and a W alone has no bound.
struct Verification {
  bool valid = false;         ///< every claim is proven
  std::string status;         ///< as claimed
  std::string reason;         ///< why the answer is not valid, else empty
  double objective = 0;       ///< upper bound on ‖W‖; soft margin: on ½‖W‖² + Σ penalty·ξ
  double dual_objective = 0;  ///< every W that meets these rows has at least this norm; soft margin: costs this
  double gap = 0;        ///< (objective (1 + scaling) − dual_objective) / objective, at least 0; NaN: bound > ‖W‖
  double violation = 0;  ///< largest absolute violation of a row
  double scaling = 0;    ///< ε such that W (1 + ε) meets every row ≥ 1
  double homogeneous = 0;  ///< largest violation of a row = 0 or ≥ 0, relative to ‖δ‖ ‖W‖_F ‖ζ‖
  double distance = 0;  ///< from W to a W that meets the rows = 0 and ≥ 0, relative to ‖W‖_F; NaN: not searched
  double residual = 0;  ///< certificate: ‖A(dual)‖_F
  double norm_bound = 0;  ///< certificate: bᵀdual/‖A(dual)‖_F; a W that meets the rows would have this ‖W‖_F or more
  std::optional<Index> rank{};  ///< nuclear norm: the number of columns of K and Q, all of which are needed
  bool own_selection = true;    ///< the rows are those of the task's selection, or of its optimal tokens if it has none
  std::vector<Index> relaxed{};  ///< queries whose rows ≥ 1 were read as ≥ 0
  std::string question{};        ///< how the rows checked differ from the task's own, in words; empty if they do not
  std::string arithmetic{};      ///< "ball, 128 bits" or "double with error bounds"
  std::string remark{};          ///< what was left out, because the problem is large or by rounding; empty: nothing
};

/// Proves every claim of a solution from the arrays of the task, with code that shares only src/base and src/task with
/// the solvers. The inputs are doubles and count as exact numbers. All that is computed from them is enclosed: in balls
/// of 128 bits, or more if that leaves a decision open; from 10⁸ multiplications on, doubles with a-priori error bounds
/// are tried first. The one exception is the search for a nearby W that meets the rows that ask for 0, which runs in
/// 512 bits without enclosures. docs/formats.md lists the rules. A claim that fails sets `valid` to false and `reason`.
Verification verify(const AttentionTask& task, const StoredSolution& solution, const VerifySettings& settings = {});

}  // namespace attsvm
