#pragma once

#include <limits>

namespace attsvm::internal {

// Tolerances of the exact solver, all relative to rows of unit length.
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
inline constexpr double kMeet = 16 * kEpsilon;  ///< a row is met when its violation is at most this times ‖W‖
inline constexpr double kFastPivot =
    1e-7;  ///< rows with smaller Cholesky pivots (within 3e-4 of the others' span) get no multiplier
inline constexpr double kDependent = 1e-13;  ///< a row equals a combination r of others to this times 1 + ‖r‖₁
inline constexpr double kIndependent =
    1e-6;  ///< rows of a guessed set closer than this to the span of the others are left out
inline constexpr double kNegligible = 1e-14;   ///< entries of r below this, relative to the largest, are zero
inline constexpr double kAmplification = 1e6;  ///< how far 1 + ‖r‖₁ may stretch a tolerance

}  // namespace attsvm::internal
