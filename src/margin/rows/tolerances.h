#pragma once

#include "attsvm/array.h"
#include "base/limits.h"

namespace attsvm::internal {

// Tolerances and sizes that several methods share. Set by hand unless a reason is given.

// The exact solver and the search for conflicts, relative to rows of unit length:
inline constexpr double kMeet = 16 * kEpsilon;  ///< a row is met when its violation is at most this times ‖W‖
inline constexpr double kFastPivot = 1e-7;      ///< rows within 3e-4, its root, of the others' span get no multiplier
inline constexpr double kDependent = 1e-13;     ///< a row equals a combination r of others to this times 1 + ‖r‖₁
inline constexpr double kIndependent = 1e-6;    ///< rows of a guessed set closer to the span of the others are left out
inline constexpr double kNegligible = 1e-14;    ///< entries of r below this, relative to the largest, are zero
inline constexpr double kAmplification = 1e6;   ///< how far 1 + ‖r‖₁ may stretch a tolerance

// The nuclear norm:
inline constexpr double kSingularNoise = 2e-12;  ///< of the largest singular value of W; verify drops those below 1e-12
inline constexpr Index kOwnLoops = 48;           ///< sizes below this never use OpenBLAS

}  // namespace attsvm::internal
