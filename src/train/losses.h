#pragma once

#include <limits>

#include "attsvm/train.h"

namespace attsvm::internal {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// ℓ(u) and its derivative, in the log domain where numbers get small. ℓ′ is negative for every loss.

struct LossTerms {
  double value;      ///< ℓ(u)
  double log_slope;  ///< log |ℓ′(u)|
};

LossTerms loss_terms(Loss loss, double u);
double log_loss_value(Loss loss, double u);  ///< log ℓ(u); NaN where ℓ(u) < 0

/// log(ℓ(best − gap) − ℓ(best)) for gap = e^{log_gap} ≥ 0, without cancellation.
double log_loss_excess(Loss loss, double best, double log_gap);

/// log(1 + e^x)
double softplus(double x);

}  // namespace attsvm::internal
