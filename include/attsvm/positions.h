#pragma once

#include "attsvm/task.h"

namespace attsvm {

/// How a key tells where in its sequence it stands.
enum class PositionKind : std::uint8_t {
  sinusoidal,  ///< adds sin and cos of t/base^(2i/d) to coordinates 2i and 2i + 1
  rotary,      ///< turns coordinates i and i + d/2 by t/base^(2i/d); d must be even
  table,       ///< adds row t of a table
};

std::string_view name_of(PositionKind kind);  ///< the name that the command line, JSON and messages use

/// An encoding of positions.
struct Positions {
  PositionKind kind = PositionKind::sinusoidal;  ///< which one
  double base = 10'000;                          ///< above 1: the slowest coordinate turns this much slower
  Array table{};                                 ///< (at least T, d); PositionKind::table alone
};

/// The task with the positions in its keys, and so in queries that are tokens. Values stay as they are, and so do
/// queries of cross and prompt attention. Rows of the SVM stay linear in W: solvers and training need know nothing of
/// positions. InputError if the encoding does not fit the keys, and for next-token tasks, whose tokens have one vector
/// wherever they stand.
AttentionTask with_positions(const AttentionTask& task, const Positions& positions);

}  // namespace attsvm
