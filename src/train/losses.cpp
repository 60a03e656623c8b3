#include "train/losses.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace attsvm::internal {
namespace {

constexpr double kNegligible = 37;  // e^{-37} < 2^-53

/// log(e^g − 1) for g = e^{log_g}
double log_expm1(double log_g) {
  if (log_g < -kNegligible) return log_g;
  const double g = std::exp(log_g);
  return g > kNegligible ? g : std::log(std::expm1(g));
}

/// The logistic loss of smoothed labels. With u* the place of its least value, ℓ′(u) = σ(u) − σ(u*), which is
/// σ(u) σ(u*) (e^{−u*} − e^{−u}): the difference of the exponentials is taken without cancellation.
LossTerms smoothed_terms(double u, double smoothing) {
  const double aim = std::log(2 / smoothing - 1), beyond = u - aim;
  const double value = (1 - smoothing / 2) * softplus(-u) + smoothing / 2 * softplus(u);
  if (beyond == 0) return {value, kLogZero, 1};
  const double log_difference = -std::min(u, aim) + std::log(-std::expm1(-std::abs(beyond)));
  return {value, log_difference - softplus(-u) - softplus(-aim), beyond > 0 ? 1.0 : -1.0};
}

/// log(log(1 + e^x))
double log_softplus(double x) { return x < -kNegligible ? x : std::log(softplus(x)); }

}  // namespace

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

LossTerms loss_terms(Loss loss, double u, double smoothing) {
  if (smoothing > 0) return smoothed_terms(u, smoothing);
  switch (loss) {
    case Loss::logistic: {
      const double common = std::log1p(std::exp(-std::abs(u)));
      return {std::max(-u, 0.0) + common, -(std::max(u, 0.0) + common)};
    }
    case Loss::exponential:
      return {std::exp(-u), -u};
    case Loss::linear:
      return {-u, 0};
  }
  throw std::logic_error("unknown loss");
}

double log_loss_value(Loss loss, double u) {
  switch (loss) {
    case Loss::logistic:
      return log_softplus(-u);
    case Loss::exponential:
      return -u;
    case Loss::linear:
      return std::log(-u);
  }
  throw std::logic_error("unknown loss");
}

double log_loss_excess(Loss loss, double best, double log_gap) {
  switch (loss) {
    case Loss::logistic:  // log(1 + e^{gap−best}) − log(1 + e^{−best}) = log(1 + σ(−best)(e^gap − 1))
      return log_softplus(log_expm1(log_gap) - softplus(best));
    case Loss::exponential:
      return log_expm1(log_gap) - best;
    case Loss::linear:
      return log_gap;
  }
  throw std::logic_error("unknown loss");
}

}  // namespace attsvm::internal
