#include "train/gamma_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace attsvm::internal {
namespace {

constexpr double kEnd = 0x1p-54;  // terms below this share of a sum do not change it

/// A number and its derivative with respect to α.
struct Moving {
  double value, slope = 0;

  friend Moving operator+(Moving a, Moving b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Moving operator*(Moving a, Moving b) { return {a.value * b.value, a.value * b.slope + a.slope * b.value}; }
  friend Moving operator/(Moving a, Moving b) {
    const double ratio = a.value / b.value;
    return {ratio, (a.slope - ratio * b.slope) / b.value};
  }
};

/// log Γ(x) and ψ(x), x > 0: Stirling's series after Γ(x + 1) = x Γ(x) has brought x beyond 12.
Moving log_gamma(double x) {
  constexpr std::array kBernoulli{1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  double product = 1, harmonic = 0;
  while (x < 12) {
    product *= x;
    harmonic += 1 / x;
    x += 1;
  }
  double value = (x - 0.5) * std::log(x) - x + kHalfLogTwoPi, slope = std::log(x) - 0.5 / x, power = 1 / x;
  for (std::size_t k = 0; k < kBernoulli.size(); ++k) {
    const double twice = 2 * static_cast<double>(k + 1);
    value += kBernoulli[k] / (twice * (twice - 1)) * power;
    power /= x;
    slope -= kBernoulli[k] / twice * power;
    power /= x;
  }
  return {value - std::log(product), slope - harmonic};
}

/// Σ_k y^k / ((α+1) … (α+k)), which is F(y) Γ(α+1) e^y / y^α.
Moving rising_series(double alpha, double y) {
  Moving term{1}, sum{1};
  for (int k = 1; term.value > kEnd * sum.value; ++k) {
    term = term * Moving{y} / Moving{alpha + k, 1};
    sum = sum + term;
  }
  return sum;
}

/// (1 − F(y)) Γ(α) e^y / y^α by its continued fraction (Lentz's method), y ≥ α + 1.
Moving falling_fraction(double alpha, double y) {
  constexpr int kMost = 10'000;
  Moving b{y + 1 - alpha, -1}, c{1e300}, d = Moving{1} / b, h = d;
  for (int k = 1; k < kMost; ++k) {
    const Moving a{-k * (k - alpha), static_cast<double>(k)};
    b = b + Moving{2};
    d = Moving{1} / (a * d + b);
    c = b + a / c;
    const Moving change = c * d;
    h = h * change;
    if (std::abs(change.value - 1) < 4 * kEnd && std::abs(change.slope) < 4 * kEnd) break;
  }
  return h;
}

/// log F at y = e^x, its derivative with respect to x, and ∂x/∂α at fixed F.
struct Place {
  double log_share, steepness, slope;
};

Place place_of(double alpha, const Moving& log_gamma_next, double x) {
  const double y = std::exp(x);
  if (y < alpha + 1) {
    const Moving sum = rising_series(alpha, y);
    return {alpha * x - y - log_gamma_next.value + std::log(sum.value), alpha / sum.value,
            (sum.value * (log_gamma_next.slope - x) - sum.slope) / alpha};
  }
  const Moving rest = falling_fraction(alpha, y);
  const double log_density = alpha * x - y - log_gamma_next.value + std::log(alpha);  // of x
  const double above = std::exp(log_density) * rest.value, psi = log_gamma_next.slope - 1 / alpha;
  return {std::log1p(-above), std::exp(log_density) / (1 - above), rest.value * (x - psi) + rest.slope};
}

}  // namespace

GammaDraw draw_gamma(double alpha, double uniform) {
  constexpr int kMostSteps = 200;
  const double nowhere = -std::numeric_limits<double>::infinity(), aim = std::log(uniform);
  if (!(alpha > 0)) return {nowhere, 0};
  const Moving next = log_gamma(alpha + 1);
  // F(y) ≤ y^α / Γ(α+1), so the root is above this; log F is concave in x, so Newton's method climbs to it.
  double x = (aim + next.value) / alpha;
  if (!std::isfinite(x)) return {nowhere, 0};
  Place place = place_of(alpha, next, x);
  for (int k = 0; k < kMostSteps; ++k) {
    const double step = (aim - place.log_share) / place.steepness;
    if (!(step > 0) || x + step == x) break;
    x += step;
    place = place_of(alpha, next, x);
  }
  constexpr double kAlone = -690;  // e^x does not change the derivative, which may be beyond the largest double
  return {x, x < kAlone ? std::log(next.slope - x) - std::log(alpha) : std::log(std::max(place.slope, 0.0))};
}

}  // namespace attsvm::internal
