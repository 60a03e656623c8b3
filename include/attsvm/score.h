#pragma once

#include <vector>

#include "attsvm/selection.h"
#include "attsvm/task.h"

namespace attsvm {

/// Scores of one query closer than this times its largest absolute score count as equal.
inline constexpr double kTieTolerance = 1e-12;

/// h(v_t) of every token of every sequence, (N), in storage order. The score of token t for query i is
/// γ_it = y_i h(v_t). InputError if the task has no head.
std::vector<double> head_values(const AttentionTask& task);

struct Tie {
  Index query;
  std::vector<Index> tokens;  ///< ascending, at least two
};

struct OptimalTokens {
  Selection selection;    ///< opt_i, the lowest index where several tie
  std::vector<Tie> ties;  ///< the queries whose best score is shared
};

/// The visible token of highest score for every query.
OptimalTokens optimal_tokens(const AttentionTask& task, double tie_tolerance = kTieTolerance);

}  // namespace attsvm
