#include "attsvm/norm.h"

#include <charconv>
#include <cmath>

#include "base/refuse.h"
#include "base/spectrum.h"

namespace attsvm {

using namespace internal;

namespace {

constexpr double kLargestPower = 8;

/// (Σ |W_ij|^p)^(1/p), computed on entries divided by the largest so that no power overflows.
double entrywise_norm(const RowMatrix& W, double p) {
  const double top = W.size() == 0 ? 0 : W.cwiseAbs().maxCoeff();
  if (!(top > 0) || !std::isfinite(top)) return top;
  double sum = 0;
  for (Index k = 0; k < W.size(); ++k) sum += std::pow(std::abs(W.data()[k]) / top, p);
  return top * std::pow(sum, 1 / p);
}

}  // namespace

std::string_view name_of(NormKind kind) {
  switch (kind) {
    case NormKind::frobenius:
      return "frobenius";
    case NormKind::nuclear:
      return "nuclear";
    case NormKind::entrywise:
      return "entrywise";
  }
  throw std::logic_error("unknown norm");
}

Norm Norm::entrywise(double power) {
  if (!(power > 1 && power <= kLargestPower))
    refuse("norm lp:{}: the power must be above 1 and at most {}", power, kLargestPower);
  return {.kind = NormKind::entrywise, .power = power};
}

Norm Norm::parse(std::string_view text) {
  if (text == "fro") return frobenius();
  if (text == "nuc") return nuclear();
  if (text.starts_with("lp:")) {
    const char *begin = text.data() + 3, *end = text.data() + text.size();
    double power = 0;
    const auto [rest, error] = std::from_chars(begin, end, power);
    if (error == std::errc() && rest == end) return entrywise(power);
  }
  refuse("norm '{}' is unknown; must be fro, nuc or lp:P with 1 < P <= {}", text, kLargestPower);
}

std::string Norm::name() const {
  switch (kind) {
    case NormKind::frobenius:
      return "fro";
    case NormKind::nuclear:
      return "nuc";
    case NormKind::entrywise:
      return fmt::format("lp:{}", power);
  }
  throw std::logic_error("unknown norm");
}

double Norm::of(const RowMatrix& W) const {
  switch (kind) {
    case NormKind::frobenius:
      return W.stableNorm();
    case NormKind::nuclear:
      return singular_values(W).sum();
    case NormKind::entrywise:
      return entrywise_norm(W, power);
  }
  throw std::logic_error("unknown norm");
}

double Norm::dual_of(const RowMatrix& A) const {
  switch (kind) {
    case NormKind::frobenius:
      return A.stableNorm();
    case NormKind::nuclear:
      return A.size() == 0 ? 0 : singular_values(A)(0);
    case NormKind::entrywise:
      return entrywise_norm(A, power / (power - 1));
  }
  throw std::logic_error("unknown norm");
}

}  // namespace attsvm
