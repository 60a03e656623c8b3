#pragma once

#include <vector>

#include "margin/nuclear/rows.h"

namespace attsvm::internal {

/// Rows that are the same but for the rounding of the model that made them: equal words at equal places of two texts.
/// Newton's equations cannot divide a multiplier between such rows, and one of them is enough. Keeps its memory between
/// calls.
class TwinRows {
 public:
  /// Leaves one of several twins in `active` (ascending), the one of least slack, and gives it the multipliers of all.
  /// `value` is that of all rows. Rows that are met with equality stay.
  void merge(const NuclearRows& rows, const double* value, IndexList& active, double* lambda);

 private:
  std::vector<Index> order_;  // active rows by right-hand side
  std::vector<Index> twins_;
  std::vector<std::uint8_t> taken_;
  IndexList left_;
};

}  // namespace attsvm::internal
