#pragma once

namespace attsvm::internal {

/// How Adam without ε proceeds in the long run, where it moves like sign descent at a speed of its own.
///
/// Gradients fall like e^{−gap}, gap the smallest row δᵀWζ. If it grows by r per step, an entry's averages settle at
/// m = g·(1−b1)/(1−b1·e^r) and v = g²·(1−b2)/(1−b2·e^{2r}), the same multiples for every entry: steps are signs of
/// length step·(m/g)/√(v/g²), which raise the gap by `margin` (the largest in the norm of the largest entry) times that
/// length. So r solves
///
///     r = step·margin · (1−b1)/(1−b1·e^r) · √((1−b2·e^{2r})/(1−b2)),
///
/// which keeps it below −½·log b2 whatever the step. What v remembers of the start fades by b2·e^{2r} per step.
struct AdamPace {
  double growth = 0;  ///< r
  double fading = 0;  ///< 1 − b2·e^{2r}: after t steps with fading·t well below 1, v still holds early gradients
};

/// fading·steps at which the share of the largest margin passes 0.7, half way from where it stays while v holds early
/// gradients; read off runs (docs/optimizers.md).
constexpr double kAdamForgotten = 2.5;

/// NaN unless 0 ≤ b1² < b2 < 1 and step·margin is above 0: with a larger b1 the averages m may outlive √v.
AdamPace adam_pace(double step, double b1, double b2, double margin);

/// The largest b2 for which fading·steps is above a given value. NaN if there is none above b1².
double b2_of_fading(double step, double b1, double margin, double steps, double faded);

}  // namespace attsvm::internal
