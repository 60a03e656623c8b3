#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attsvm/norm.h"
#include "attsvm/task.h"

namespace attsvm {

/// An answer as its file holds it: everything that is claimed, and nothing that has to be believed.
struct StoredSolution {
  std::string norm = "fro", problem = "att", status;
  RowMatrix W;
  RowMatrix K, Q;            ///< (d,r), (dz,r), of nuclear answers
  bool has_factors = false;  ///< K and Q are there
  std::vector<Index> row_query, row_keep, row_drop;
  std::vector<bool> row_equal;
  std::vector<double> rhs, slack, dual;
  double tolerance = 0, objective = 0, dual_objective = 0;
  Array select;             ///< (q,longest) bool
  std::vector<bool> relax;  ///< (q)
  bool w_only = false;      ///< another solver's answer: there is nothing but W
};

/// Gives an answer that is W alone what it is judged against: the task's own selection, else the optimal tokens, and no
/// relaxed query. InputError if the task has neither selection nor head. Other answers stay as they are.
void complete(const AttentionTask& task, StoredSolution& solution);

/// Multipliers λ prove infeasibility if they prove that no W of norm up to this times ω meets the rows. ω is the
/// largest b/(‖δ‖ ‖ζ‖) of the rows with a right-hand side b > 0 that λ weighs: the norm that the neediest of them needs
/// alone.
inline constexpr double kInfeasibleFactor = 1e12;

struct VerifySettings {
  double tolerance = 1e-8;  ///< of the relative gap that an optimum may have; the file's own is not believed
};

/// What was proven. Objective, violation, scaling, residual and gap are upper ends of what was enclosed, bounds lower
/// ends, rounded outward to doubles. NaN where the claim has none (a certificate has no W, W alone no bound).
struct Verification {
  bool valid = false;
  std::string status, reason;  ///< reason: why not valid
  double objective = 0;        ///< at least ‖W‖
  double dual_objective = 0;   ///< every W that meets these rows has at least this norm
  double gap = 0;              ///< (objective (1 + scaling) − dual_objective) / objective; NaN if that contradicts
  double violation = 0;        ///< largest absolute violation of a row
  double scaling = 0;          ///< ε: W (1+ε) meets every row ≥ 1
  double homogeneous = 0;      ///< largest violation of a row = 0 or ≥ 0, relative to ‖δ‖ ‖W‖_F ‖ζ‖
  double distance =
      0;  ///< to the nearest matrix that meets the rows = 0 and ≥ 0, relative to ‖W‖_F; NaN if not looked for
  double residual = 0;           ///< ‖A(dual)‖_F of a certificate
  double norm_bound = 0;         ///< bᵀdual/‖A(dual)‖_F of a certificate: no W that meets the rows is smaller
  std::optional<Index> rank{};   ///< of a nuclear answer: the columns of K and Q, none of them superfluous
  bool own_selection = true;     ///< the rows are those of the task's own selection, else of its optimal tokens
  std::vector<Index> relaxed{};  ///< queries whose ≥ 1 was read as ≥ 0
  std::string question{};        ///< whose rows were checked, in words; empty if they are the task's own
  std::string arithmetic{};      ///< "ball, 128 bits" or "double with error bounds"
};

/// Proves every claim from the raw arrays, with code that shares nothing but base with the solvers. All inputs are
/// doubles, hence exact numbers; everything computed from them is enclosed, in balls of 128 bits, or more where that
/// leaves a decision open, or in doubles with a-priori error bounds where that is too long (from 10⁸ multiplications
/// on). The one exception is the search for a W nearby that meets the rows asking for 0, which runs in 512 bits without
/// enclosures. docs/formats.md lists the rules.
Verification verify(const AttentionTask& task, const StoredSolution& solution, const VerifySettings& settings = {});

}  // namespace attsvm
