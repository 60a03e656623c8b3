#pragma once

#include "attsvm/task.h"

namespace attsvm {

/// How attention is told where in its sequence a token stands. The last four speak of the distance s − t from a token t
/// to the query's own place s: its token, or where the query is no token, the last one it sees. With the last three
/// every query has keys of its own.
enum class PositionKind : std::uint8_t {
  sinusoidal,   ///< adds sin and cos of t/base^(2i/d) to coordinates 2i and 2i + 1
  rotary,       ///< turns coordinates i and i + d/2 by t/base^(2i/d); d must be even
  table,        ///< adds row t of a table
  fixed_slope,  ///< adds −m·(s − t) with a given m to the logits, in the task's `bias`; keys stay as they are
  /// Logits xᵀWz + b_{s−t} with one unknown b per distance: prompt attention whose keys are x zᵀ, row by row, and a 1
  /// at the distance. The prompt is W, row by row, and b from the least distance up.
  bias,
  slope,  ///< the same with logits xᵀWz − m·(s − t) and one unknown m, which is the last coordinate of the prompt
  /// A 1 at the distance is appended to keys, and a 1 to queries. W has rows for distances and a column for the
  /// constant: a bias per distance, one per key, and one per distance and query.
  relative,
};

std::string_view name_of(PositionKind kind);  ///< the name that the command line, JSON and messages use

bool of_distances(PositionKind kind);  ///< one of the last four

/// An encoding of positions.
struct Positions {
  PositionKind kind = PositionKind::sinusoidal;  ///< which one
  double base = 10'000;                          ///< above 1: the slowest coordinate turns this much slower
  Array table{};                                 ///< (at least T, d); PositionKind::table alone
  double slope = 0;                              ///< m; PositionKind::fixed_slope alone
};

/// The task with the positions in its keys, and so in queries that are tokens; distances are in keys alone, and those
/// of a fixed slope in `bias`. Values stay as they are, and so do queries of cross and prompt attention. Rows of the
/// SVM stay linear in W: solvers and training need know nothing of positions. InputError if the encoding does not fit
/// the keys, and for next-token tasks, whose tokens have one vector wherever they stand.
AttentionTask with_positions(const AttentionTask& task, const Positions& positions);

/// The least and the largest distance s − t in a task.
struct DistanceRange {
  Index least;    ///< the least s − t
  Index largest;  ///< the largest s − t
};

/// Over all queries and the tokens that they see. Not for next-token tasks.
DistanceRange distance_range(const AttentionTask& task);

}  // namespace attsvm
