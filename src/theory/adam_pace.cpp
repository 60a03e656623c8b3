#include "theory/adam_pace.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace attsvm::internal {

AdamPace adam_pace(double step, double b1, double b2, double margin) {
  if (!(b1 >= 0 && b1 * b1 < b2 && b2 < 1 && step * margin > 0)) return {kNaN, kNaN};
  // In terms of x = 1 − b2·e^{2r} nothing cancels where v hardly forgets and x is tiny.
  const double slowest = -0.5 * std::log(b2);
  const auto growth_of = [&](double x) { return slowest + 0.5 * std::log1p(-x); };
  const auto too_fast = [&](double x) {  // the steps at this r would raise the gap by more than r
    const double r = growth_of(x);
    return step * margin * (1 - b1) / (1 - b1 * std::exp(r)) * std::sqrt(x / (1 - b2)) > r;
  };
  double low = 0, high = 1 - b2;  // r from its largest value down to 0
  for (int k = 0; k < 200; ++k) {
    const double middle = low > 0 ? std::sqrt(low * high) : high / 1e6;
    if (middle <= low || middle >= high) break;
    (too_fast(middle) ? high : low) = middle;
    if (low == 0 && high < 1e-300) break;
  }
  return {growth_of(high), high};
}

double b2_of_fading(double step, double b1, double margin, double steps, double faded) {
  const auto forgets = [&](double rest) { return adam_pace(step, b1, 1 - rest, margin).fading * steps > faded; };
  constexpr double kFactor = 1.1;
  double rest = 1e-12;  // 1 − b2
  while (!forgets(rest)) {
    rest *= kFactor;
    if (!(1 - rest > b1 * b1)) return kNaN;
  }
  double low = rest / kFactor, high = rest;
  for (int k = 0; k < 60; ++k) {
    const double middle = 0.5 * (low + high);
    (forgets(middle) ? high : low) = middle;
  }
  return 1 - high;
}

}  // namespace attsvm::internal
