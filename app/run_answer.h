#pragma once

#include "attsvm/theory.h"
#include "session.h"

namespace attsvm::internal {

/// Whether training converges, to what, and how fast: one sentence, and its facts for --json.
struct RunAnswer {
  std::string text;
  Json converges, predicted, exponent;  ///< null: cannot be said
};

RunAnswer answer_of(const Check& check, const StoredRun& run);

}  // namespace attsvm::internal
