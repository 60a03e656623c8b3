#pragma once

#include <limits>

#include "attsvm/train.h"

namespace attsvm::internal {

inline constexpr double kLogZero = -std::numeric_limits<double>::infinity();

// ℓ(u) and its derivative, in the log domain where numbers get small. Label smoothing a mixes the loss with that of the
// other label: (1 − a/2) ℓ(u) + a/2 ℓ(−u). It is for the logistic loss, whose least value is then at u = log(2/a − 1).

struct LossTerms {
  double value;      ///< ℓ(u)
  double log_slope;  ///< log |ℓ′(u)|
  double sign = -1;  ///< of ℓ′(u): 1 where smoothed labels ask for less
};

LossTerms loss_terms(Loss loss, double u, double smoothing = 0);
double log_loss_value(Loss loss, double u);  ///< log ℓ(u); NaN where ℓ(u) < 0

/// log(ℓ(best − gap) − ℓ(best)) for gap = e^{log_gap} ≥ 0, without cancellation.
double log_loss_excess(Loss loss, double best, double log_gap);

/// log(1 + e^x)
double softplus(double x);

}  // namespace attsvm::internal
