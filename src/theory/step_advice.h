#pragma once

#include <span>
#include <string>
#include <string_view>

#include "attsvm/array.h"

namespace attsvm::internal {

/// A run as far as its pace is concerned, measured in the norm that theory names for it.
struct PacedRun {
  std::string_view settings;     ///< as words_of() writes them
  std::span<const Index> steps;  ///< of its points
  std::span<const double> gaps;  ///< the smallest gap between logits of a kept and a dropped token, at each point
  double margin = 0;             ///< the largest one there is
  double rho = 0;                ///< the share of it that the last point has
};

/// What keeps the run from its SVM and other settings would mend, in words; empty: nothing that is known, or it is
/// close.
std::string step_advice(const PacedRun& run);

}  // namespace attsvm::internal
