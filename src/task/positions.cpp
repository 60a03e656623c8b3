#include "attsvm/positions.h"

#include <algorithm>
#include <cmath>

#include "base/refuse.h"
#include "task/distances.h"
#include "task/rotation.h"
#include "task/task_fields.h"

namespace attsvm {

using namespace internal;

namespace internal {
namespace {

/// How much slower than coordinate 0 the pair that begins with coordinate 2i, or i, turns.
double slowness(double base, Index i, Index d) {
  return std::pow(base, 2.0 * static_cast<double>(i) / static_cast<double>(d));
}

void add_waves(RowMatrix& keys, const std::vector<Index>& position, double base) {
  for (Index k = 0; k < keys.cols(); ++k) {
    const double slow = slowness(base, k / 2, keys.cols());
    for (Index t = 0; t < keys.rows(); ++t) {
      const double angle = static_cast<double>(position[static_cast<std::size_t>(t)]) / slow;
      keys(t, k) += k % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
}

void add_table(RowMatrix& keys, const std::vector<Index>& position, Array table) {
  take_real(table, "table");
  const Index last = *std::max_element(position.begin(), position.end());
  if (table.rank() != 2 || table.shape[1] != keys.cols() || table.shape[0] <= last) {
    refuse("table has shape {}; must be (P,{}) with P >= {}, the length of the longest sequence",
           shape_text(table.shape), keys.cols(), last + 1);
  }
  const ConstRows rows(f64_span(table).data(), table.shape[0], table.shape[1]);
  for (Index t = 0; t < keys.rows(); ++t) keys.row(t) += rows.row(position[static_cast<std::size_t>(t)]);
}

}  // namespace

void rotate_rows(Eigen::Ref<RowMatrix> rows, const std::vector<Index>& position, double base) {
  const Index half = rows.cols() / 2;
  for (Index i = 0; i < half; ++i) {
    const double slow = slowness(base, i, rows.cols());
    for (Index t = 0; t < rows.rows(); ++t) {
      const double angle = static_cast<double>(position[static_cast<std::size_t>(t)]) / slow;
      const double left = rows(t, i), right = rows(t, i + half);
      rows(t, i) = left * std::cos(angle) - right * std::sin(angle);
      rows(t, i + half) = right * std::cos(angle) + left * std::sin(angle);
    }
  }
}

}  // namespace internal

bool of_distances(PositionKind kind) {
  return kind == PositionKind::fixed_slope || kind == PositionKind::bias || kind == PositionKind::slope ||
         kind == PositionKind::relative;
}

std::string_view name_of(PositionKind kind) {
  switch (kind) {
    case PositionKind::sinusoidal:
      return "sinusoidal";
    case PositionKind::rotary:
      return "rotary";
    case PositionKind::table:
      return "table";
    case PositionKind::fixed_slope:
      return "fixed-slope";
    case PositionKind::bias:
      return "bias";
    case PositionKind::slope:
      return "slope";
    case PositionKind::relative:
      return "relative";
  }
  return "unknown";
}

AttentionTask with_positions(const AttentionTask& task, const Positions& positions) {
  if (task.next_token())
    refuse("positions are not for next-token tasks, whose tokens have one vector wherever they stand");
  const Index d = task.key_size();
  if (!(positions.base > 1) || !std::isfinite(positions.base))
    refuse("base = {}; must be a finite number above 1", positions.base);
  if ((positions.kind == PositionKind::table) != positions.table.given())
    refuse("{}", positions.table.given() ? "a table goes with positions of the kind table alone" : "table is missing");
  if (!std::isfinite(positions.slope)) refuse("slope = {}; must be a finite number", positions.slope);
  if (positions.kind != PositionKind::fixed_slope && positions.slope != 0)
    refuse("a given slope goes with positions of the kind fixed-slope alone");
  if (positions.kind == PositionKind::fixed_slope) return with_fixed_slope(task, positions.slope);
  if (of_distances(positions.kind)) return with_distances(task, positions.kind);
  if (positions.kind == PositionKind::rotary && d % 2 != 0)
    refuse("keys of size d = {} cannot be rotated; d must be even", d);

  TaskArrays arrays = task.arrays();
  const Array& given = task.keys_differ() ? arrays.keys : arrays.tokens;
  RowMatrix keys = ConstRows(f64_span(given).data(), task.tokens(), d);
  std::vector<Index> position;
  for (Index s = 0; s < task.sequences(); ++s) {
    for (Index t = 0; t < task.length(s); ++t) position.push_back(t);
  }
  switch (positions.kind) {
    case PositionKind::sinusoidal:
      add_waves(keys, position, positions.base);
      break;
    case PositionKind::rotary:
      rotate_rows(keys, position, positions.base);
      break;
    case PositionKind::table:
      add_table(keys, position, positions.table);
      break;
    case PositionKind::fixed_slope:
    case PositionKind::bias:
    case PositionKind::slope:
    case PositionKind::relative:
      break;  // returned above
  }
  const std::vector<Index> shape = given.shape;
  arrays.keys = Array::own(keys);
  arrays.keys.shape = shape;
  return AttentionTask(std::move(arrays));
}

}  // namespace attsvm
