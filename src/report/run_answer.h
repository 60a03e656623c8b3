#pragma once

#include "attsvm/files.h"
#include "attsvm/theory.h"
#include "report/plane.h"

namespace attsvm::internal {

/// Whether training converges, to what, and how fast: one sentence, which `attsvm check` and the page say, and its
/// facts.
struct RunAnswer {
  std::string text;
  Json converges, predicted, exponent;  ///< null: cannot be said
};

RunAnswer answer_of(const Check& check, const StoredRun& run);

}  // namespace attsvm::internal
