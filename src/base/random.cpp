#include "base/random.h"

#include <bit>
#include <cmath>
#include <cstddef>

namespace attsvm::internal {
namespace {

std::uint64_t join(std::uint32_t low, std::uint32_t high) { return (std::uint64_t{high} << 32) | low; }

double to_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

/// Σ coefficients[k] x^k
template <std::size_t N>
double polynomial(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[N - 1];
  for (std::size_t k = N - 1; k-- > 0;) sum = sum * x + coefficients[k];
  return sum;
}

/// log(x) for normal x > 0, from the series of artanh: log m = 2 artanh((m−1)/(m+1)) with m in [√½, √2).
double portable_log(double x) {
  const auto pattern = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<int>(pattern >> 52) - 1023;
  auto mantissa = std::bit_cast<double>((pattern & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    ++exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return exponent * 0.6931471805599453 + 2 * s * series;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

Random::Random(std::uint64_t seed, std::uint32_t instance, std::uint32_t stream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      instance_(instance),
      stream_(stream) {}

std::array<std::uint32_t, 4> Random::block(std::uint64_t index) const {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream_, instance_}, key_);
}

std::uint64_t Random::bits(std::uint64_t position) const {
  const auto four = block(position / 2);
  return position % 2 == 0 ? join(four[0], four[1]) : join(four[2], four[3]);
}

double Random::uniform(std::uint64_t position) const { return to_unit(bits(position)); }

double Random::normal(std::uint64_t position) const { return normal_quantile(uniform(position)); }

std::uint64_t Random::below(std::uint64_t bound, std::uint64_t position) const {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((Wide{bits(position)} * bound) >> 64);
}

void Random::normals(std::span<double> out, std::uint64_t first) const {
  std::size_t i = 0;
  if (first % 2 == 1 && !out.empty()) out[i++] = normal(first);
  for (; i + 2 <= out.size(); i += 2) {
    const auto four = block((first + i) / 2);
    out[i] = normal_quantile(to_unit(join(four[0], four[1])));
    out[i + 1] = normal_quantile(to_unit(join(four[2], four[3])));
  }
  if (i < out.size()) out[i] = normal(first + i);
}

double normal_quantile(double p) {
  constexpr std::array a{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                         1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                         3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr std::array b{1.0,
                         4.2313330701600911252e1,
                         6.8718700749205790830e2,
                         5.3941960214247511077e3,
                         2.1213794301586595867e4,
                         3.9307895800092710610e4,
                         2.8729085735721942674e4,
                         5.2264952788528545610e3};
  constexpr std::array c{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                         3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                         2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr std::array d{1.0,
                         2.05319162663775882187e0,
                         1.67638483018380384940e0,
                         6.89767334985100004550e-1,
                         1.48103976427480074590e-1,
                         1.51986665636164571966e-2,
                         5.47593808499534494600e-4,
                         1.05075007164441684324e-9};
  constexpr std::array e{6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                         2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                         2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr std::array f{1.0,
                         5.99832206555887937690e-1,
                         1.36929880922735805310e-1,
                         1.48753612908506148525e-2,
                         7.86869131145613259100e-4,
                         1.84631831751005468180e-5,
                         1.42151175831644588870e-7,
                         2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r);
  }
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double size =
      r <= 5 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6) : polynomial(e, r - 5) / polynomial(f, r - 5);
  return q < 0 ? -size : size;
}

}  // namespace attsvm::internal
