#pragma once

#include <algorithm>
#include <cmath>

namespace attsvm::internal {

struct Interval {
  double low = 0, high = 0;
};

/// Wilson's interval for a share that was seen in `count` runs, at 95 %: always within [0, 1], and not a point where
/// the share is 0 or 1. All of [0, 1] for no runs.
inline Interval wilson(double share, double count) {
  constexpr double z = 1.959963984540054;  // 97.5 % of normal draws are below it
  const double weight = 1 / (1 + z * z / count), middle = weight * (share + z * z / (2 * count)),
               reach = weight * z * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  // Where all or none were seen, one end is exact; rounding would miss it.
  return {share == 0 ? 0 : std::max(0.0, middle - reach), share == 1 ? 1 : std::min(1.0, middle + reach)};
}

}  // namespace attsvm::internal
