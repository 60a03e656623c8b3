#include "attsvm/norm.h"

#include <charconv>
#include <cmath>
#include <optional>

#include "base/limits.h"
#include "base/refuse.h"
#include "base/spectrum.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr std::string_view kEntrywise = "lp:", kSchatten = "schatten:";

/// (Σ |x|^p)^(1/p), computed on numbers divided by the largest so that no power overflows.
double power_norm(const double* x, Index size, double p) {
  const Eigen::Map<const Eigen::VectorXd> numbers(x, size);
  if (p == 2) return numbers.stableNorm();
  const double top = size == 0 ? 0 : numbers.cwiseAbs().maxCoeff();
  if (!(top > 0) || !std::isfinite(top) || p == kInfinity) return top;
  double sum = 0;
  for (Index k = 0; k < size; ++k) sum += p == 1 ? std::abs(x[k]) / top : std::pow(std::abs(x[k]) / top, p);
  return top * std::pow(sum, 1 / p);
}

std::optional<double> parse_power(std::string_view text) {
  const char* end = text.data() + text.size();
  double power = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, power);
  return error == std::errc() && rest == end ? std::optional(power) : std::nullopt;
}

void require_power(std::string_view family, double power) {
  if (!(power >= 1)) refuse("norm {}{}: the power must be at least 1; inf is allowed", family, power);
}

}  // namespace

Norm Norm::spectral() { return schatten(kInfinity); }

Norm Norm::largest() { return entrywise(kInfinity); }

Norm Norm::l1() { return entrywise(1); }

Norm Norm::entrywise(double power) {
  require_power(kEntrywise, power);
  return {.family = NormFamily::entrywise, .power = power};
}

Norm Norm::schatten(double power) {
  require_power(kSchatten, power);
  return {.family = power == 2 ? NormFamily::entrywise : NormFamily::schatten, .power = power};
}

Norm Norm::parse(std::string_view text) {
  for (const Norm& norm : {frobenius(), nuclear(), spectral(), largest(), l1()}) {
    if (text == norm.name()) return norm;
  }
  for (const std::string_view family : {kEntrywise, kSchatten}) {
    if (!text.starts_with(family)) continue;
    if (const auto power = parse_power(text.substr(family.size())))
      return family == kEntrywise ? entrywise(*power) : schatten(*power);
  }
  refuse("norm '{}' is unknown; must be fro, nuc, spec, max, l1, lp:P or schatten:P with P from 1 to inf", text);
}

std::string Norm::name() const {
  if (is_frobenius()) return "fro";
  if (power == 1) return is_entrywise() ? "l1" : "nuc";
  if (power == kInfinity) return is_entrywise() ? "max" : "spec";
  return fmt::format("{}{}", is_entrywise() ? kEntrywise : kSchatten, power);
}

bool Norm::is_strictly_convex() const { return power > 1 && power < kInfinity; }

Norm Norm::dual() const {
  const double dual_power = power == 1 ? kInfinity : power == kInfinity ? 1 : power / (power - 1);
  return {.family = dual_power == 2 ? NormFamily::entrywise : family, .power = dual_power};
}

double Norm::of(const RowMatrix& W) const {
  if (is_entrywise()) return power_norm(W.data(), W.size(), power);
  if (W.size() == 0) return 0;
  const Eigen::VectorXd sigma = singular_values(W);
  return power_norm(sigma.data(), sigma.size(), power);
}

}  // namespace attsvm
