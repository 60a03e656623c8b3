#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attsvm/equivalence.h"
#include "attsvm/gradient.h"
#include "attsvm/optimality.h"
#include "attsvm/score.h"

namespace attsvm {

enum class Verdict : std::uint8_t {
  global,      ///< the selection is the optimal one
  local,       ///< it is locally optimal, and not optimal
  neither,     ///< the reason says why
  infeasible,  ///< certified (kInfeasibleFactor): no W separates it, whether or not it is the optimal one
};

std::string_view name_of(Verdict verdict);

struct CheckSettings {
  double threshold = 1e-3;       ///< nonlinear heads keep the tokens with at least this attention
  std::function<bool()> stop{};  ///< looked at inside solves; true ends them, and what they would tell is not known
};

/// What the theory says about a task, a selection and, if given, a run.
struct Check {
  OptimalTokens optimal;
  Selection selection;                       ///< judged: the run's, else the one given
  std::optional<SelectionReport> report{};   ///< of selections of one token a query
  std::optional<MarginSolution> nuclear{};   ///< nuclear SVM of the selection, where it is separable
  std::optional<MarginSolution> gen{};       ///< Gen-SVM of a selection of sets that no run explains
  std::optional<Equivalence> equivalence{};  ///< of runs that keep sets
  bool separable = false;
  bool decided = true;             ///< false: a solve was stopped before it told whether the selection is separable
  bool optimal_selection = false;  ///< every query selects its best token
  Verdict verdict = Verdict::neither;
  std::string reason;
  // One entry a recorded point of the run; NaN where there is no solution to compare with, or the point is zero.
  std::vector<double> correlation_fro, correlation_nuc, correlation_gen, correlation_equivalence, correlation_single;
};

/// Judges a selection. InputError if the task has no head.
Check check_selection(const AttentionTask& task, Selection selection, Threads& threads,
                      const CheckSettings& settings = {});

/// Judges a run that ended at W and passed through the points of `record`.
Check check_run(const AttentionTask& task, const RowMatrix& W, std::span<const ConstRows> record,
                const CheckSettings& settings, Threads& threads);

}  // namespace attsvm
